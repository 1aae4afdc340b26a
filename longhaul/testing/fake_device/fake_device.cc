#include "longhaul/testing/fake_device/fake_device.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/as_strided_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "longhaul/testing/fake_device/deferred_call.h"
#include "longhaul/testing/fake_device/fake_generators.h"
#include "longhaul/testing/fake_device/fake_memory.h"
#include "longhaul/testing/fake_device/fake_streams.h"

namespace longhaul::fake_device {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

std::atomic<int> device_count{0};
std::atomic<int64_t> copies_to_host{0};
std::atomic<int64_t> copies_to_device{0};

FakeStreams& streams() {
  return FakeStreams::instance();
}

// ---- Devices, streams and events, as libtorch asks for them ----

class FakeGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override { return streams().exchange_device(device); }
  c10::Device getDevice() const override { return streams().device(); }
  void setDevice(c10::Device device) const override { streams().exchange_device(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { streams().exchange_device(device); }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(device_count.load()); }

  c10::Stream getStream(c10::Device device) const noexcept override { return streams().current(device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return streams().from_pool(device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return streams().exchange(stream); }
  bool queryStream(const c10::Stream& stream) const override { return streams().reached(streams().now(stream)); }
  void synchronizeStream(const c10::Stream& stream) const override {
    count_wait();
    streams().wait(stream);
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    const FakeStreams::Moment now = streams().now(stream);
    if (*event == nullptr) {
      *event = new FakeStreams::Moment(now);
    } else {
      *moment(*event) = now;
    }
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) streams().block(stream, *moment(event));
  }
  bool queryEvent(void* event) const override { return event == nullptr || streams().reached(*moment(event)); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete moment(event); }

 private:
  static FakeStreams::Moment* moment(void* event) { return static_cast<FakeStreams::Moment*>(event); }
};

// ---- Kernels that make or move tensors; deferred_call has all others ----

template <typename Make>
at::Tensor on_device(c10::optional<c10::Device> device, Make&& make) {
  const c10::OptionalDeviceGuard guard(device);
  return make(&fake_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1));
}

at::Tensor empty(at::IntArrayRef size, c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                 c10::optional<c10::Device> device, c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
  return on_device(device, [&](c10::Allocator* allocator, c10::DispatchKeySet keys) {
    return at::detail::empty_generic(size, allocator, keys, c10::dtype_or_default(dtype), format);
  });
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, c10::optional<at::ScalarType> dtype,
                         c10::optional<at::Layout>, c10::optional<c10::Device> device, c10::optional<bool>) {
  return on_device(device, [&](c10::Allocator* allocator, c10::DispatchKeySet keys) {
    return at::detail::empty_strided_generic(size, stride, allocator, keys, c10::dtype_or_default(dtype));
  });
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      c10::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

// Blocks of pinned host memory.
struct PinnedBlocks {
  std::mutex mutex;
  std::set<const void*> begins;

  static PinnedBlocks& get() {
    static auto* blocks = new PinnedBlocks;
    return *blocks;
  }
};

bool is_pinned_memory(const at::Tensor& tensor) {
  PinnedBlocks& blocks = PinnedBlocks::get();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  return blocks.begins.count(tensor.storage().data()) > 0;
}

// The host sees the values when the copy to it is over; what it gives may be changed at once.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  const at::AutoDispatchBelowAutograd below_autograd;
  const at::DisableRecordFunctionGuard unrecorded;
  const c10::Stream stream = streams().current(self.is_cpu() ? to.device() : self.device());
  if (to.is_cpu()) {
    ++copies_to_host;
    if (non_blocking && is_pinned_memory(to)) {
      streams().enqueue(stream, [from = on_host(self), to] {
        const at::AutoDispatchBelowAutograd below_autograd_then;
        const at::DisableRecordFunctionGuard unrecorded_then;
        to.copy_(from);
      });
      return to;
    }
    count_wait();
    streams().wait(stream);
    to.copy_(on_host(self));
    return to;
  }
  at::Tensor from;
  if (self.is_cpu()) {
    ++copies_to_device;
    from = self.clone();
  } else {
    from = on_host(self);
    if (self.device() != to.device()) streams().block(stream, streams().now(streams().current(to.device())));
  }
  streams().enqueue(stream, [from, place = on_host(to)] {
    const at::AutoDispatchBelowAutograd below_autograd;
    const at::DisableRecordFunctionGuard unrecorded;
    place.copy_(from);
  });
  if (self.device() != to.device() && !self.is_cpu()) {
    streams().block(streams().current(to.device()), streams().now(stream));
  }
  return to;
}

at::Scalar read_number(const at::Tensor& self) {
  count_wait();
  streams().wait(streams().current(self.device()));
  return on_host(self).item();
}

void take_storage(c10::TensorImpl* impl, c10::Storage storage, int64_t offset, at::IntArrayRef size,
                  at::IntArrayRef stride) {
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(size, stride);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  at::DimVector contiguous(size.size(), 1);
  for (size_t i = size.size(); i-- > 1;) contiguous[i - 1] = contiguous[i] * std::max<int64_t>(size[i], 1);
  take_storage(self.unsafeGetTensorImpl(), std::move(source), offset, size,
               stride.size() == size.size() ? stride : at::IntArrayRef(contiguous));
  return self;
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  take_storage(self.unsafeGetTensorImpl(), source.storage(), source.storage_offset(), source.sizes(), source.strides());
  return self;
}

// Keeps the values that have room, as on the CPU.
const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size, c10::optional<at::MemoryFormat> format) {
  const at::Tensor made = at::empty(size, self.options(), format);
  const size_t needed = made.storage().nbytes() + static_cast<size_t>(self.storage_offset()) * self.itemsize();
  if (needed > self.storage().nbytes()) {
    const at::Tensor bytes = at::empty({static_cast<int64_t>(needed)}, self.options().dtype(at::kByte));
    c10::StorageImpl* storage = self.storage().unsafeGetStorageImpl();
    if (storage->nbytes() > 0) {
      const at::Tensor kept = at::empty({0}, self.options().dtype(at::kByte));
      take_storage(kept.unsafeGetTensorImpl(), self.storage(), 0, {static_cast<int64_t>(storage->nbytes())}, {1});
      bytes.narrow(0, 0, kept.numel()).copy_(kept);
    }
    storage->set_data_ptr(bytes.storage().unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, self.device())));
    storage->set_nbytes(needed);
  }
  self.unsafeGetTensorImpl()->set_sizes_and_strides(made.sizes(), made.strides());
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

// libtorch would call these by an overload with several `out` arguments, and then (1.13) use references to what the
// boxed kernel's caller had on its stack.
bool has_several_results(const c10::OperatorHandle& op) {
  const auto& returns = op.schema().returns();
  return returns.size() > 1 && std::all_of(returns.begin(), returns.end(), [](const c10::Argument& value) {
           return value.alias_info() == nullptr && value.type()->kind() == c10::TypeKind::TensorType;
         });
}

void register_calls_with_several_results(torch::Library& aten) {
  const c10::DispatchKey by_out_argument = c10::DispatchKey::CompositeExplicitAutogradNonFunctional;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !op->hasSchema() || !has_several_results(*op) || !op->hasKernelForDispatchKey(by_out_argument)) continue;
    const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    aten.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&call_deferred>());
  }
}

void register_kernels() {
  static torch::Library all(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&call_deferred>());
  aten.impl("empty.memory_format", TORCH_FN(empty));
  aten.impl("empty_strided", TORCH_FN(empty_strided));
  aten.impl("as_strided", TORCH_FN(as_strided));
  aten.impl("_copy_from", TORCH_FN(copy_from));
  aten.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  aten.impl("_local_scalar_dense", TORCH_FN(read_number));
  aten.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  aten.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  aten.impl("resize_", TORCH_FN(resize));
  register_calls_with_several_results(aten);
  // They have composite kernels for "no such device", which a fallback does not replace.
  for (const char* name : {"convolution_overrideable", "convolution_backward_overrideable"}) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&call_deferred>());
  }
}

}  // namespace

void install(int devices) {
  static std::once_flag once;
  std::call_once(once, [devices] {
    device_count = devices;
    static const c10::impl::DeviceGuardImplRegistrar guard(kType, new FakeGuard());
    c10::SetAllocator(kType, &fake_allocator());
    register_kernels();
  });
}

c10::Device device(int index) {
  return {kType, static_cast<c10::DeviceIndex>(index)};
}

void move(const torch::nn::Module& module, c10::Device to) {
  // Tensor::set_data refuses a tensor whose kind of device libtorch does not list.
  const auto move_one = [&](const at::Tensor& tensor) {
    const at::Tensor moved = tensor.detach().to(to);
    tensor.unsafeGetTensorImpl()->shallow_copy_from(moved.getIntrusivePtr());
  };
  for (const at::Tensor& parameter : module.parameters()) move_one(parameter);
  for (const at::Tensor& buffer : module.buffers()) move_one(buffer);
}

Counts counts() {
  const CallCounts calls = call_counts();
  return {calls.operators, calls.waits, copies_to_host, copies_to_device};
}

void draw_from_own_generators() {
  set_draws_from_own(true);
}

at::Tensor pinned_memory(at::IntArrayRef sizes, at::ScalarType dtype) {
  const at::Tensor memory = at::empty(sizes, dtype);
  PinnedBlocks& blocks = PinnedBlocks::get();
  {
    const std::lock_guard<std::mutex> lock(blocks.mutex);
    blocks.begins.insert(memory.data_ptr());
  }
  const auto free = [memory, &blocks](void* begin) {
    const std::lock_guard<std::mutex> lock(blocks.mutex);
    blocks.begins.erase(begin);
  };
  return at::from_blob(memory.data_ptr(), sizes, free, memory.options());
}

int64_t allocated_bytes() {
  return FakeMemory::instance().allocated();
}

void fail_allocation(int64_t n) {
  FakeMemory::instance().fail_allocation(n);
}

void lose(const std::string& reason) {
  streams().lose(reason);
}

void reset() {
  streams().find_again();
  FakeMemory::instance().fail_allocation(0);
  streams().wait_for_all();
  set_draws_from_own(false);
  reset_call_counts();
  copies_to_host = 0;
  copies_to_device = 0;
}

}  // namespace longhaul::fake_device
