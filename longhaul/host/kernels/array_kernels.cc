#include <fmt/format.h>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/graph.h"
#include "longhaul/host/host_kernel.h"
#include "longhaul/host/kernels/named_errors.h"
#include "longhaul/host/rows.h"
#include "longhaul/host/seed.h"

namespace longhaul {
namespace {

// The random numbers of one operation in a session.
class RandomOrders : public Resource {
 public:
  explicit RandomOrders(uint64_t seed) : random_(seed) {}
  std::vector<int64_t> next(int64_t count) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return random_order(count, random_);
  }

 private:
  Mutex mutex_;
  std::mt19937_64 random_ GUARDED_BY(mutex_);
};

uint64_t seed_of(const Operation& op) {
  const int64_t* seed = op.find_attr<int64_t>("seed");
  const int64_t* seed2 = op.find_attr<int64_t>("seed2");
  uint64_t own = seed == nullptr ? 0 : static_cast<uint64_t>(*seed);
  if (seed2 != nullptr) own = own * 31 + static_cast<uint64_t>(*seed2);
  const uint64_t of_graph = op.graph().seed();
  if (own == 0 && of_graph == 0) return fresh_seed();
  return (of_graph * 31 + own) * 0x9e3779b97f4a7c15u ^ seed_of_name(op.name());
}

void random_shuffle(HostCall& call) {
  const auto orders = std::dynamic_pointer_cast<RandomOrders>(call.own.find_or_make(
      "RandomShuffle " + call.op.name(), [&] { return std::make_shared<RandomOrders>(seed_of(call.op)); }));
  const Tensor& x = call.inputs[0];
  row_elements(x);
  call.results.push_back(gather_rows(x, orders->next(x.shape().dim(0))));
}

void gather(HostCall& call) {
  const Tensor &x = call.inputs[0], &indices = call.inputs[1];
  if (call.inputs[2].item<int64_t>() != 0) throw InvalidArgumentError("rows are gathered along axis 0 only");
  const Tensor rows = gather_rows(x, to_int64s(indices));
  std::vector<int64_t> dims = indices.shape().dims();
  dims.insert(dims.end(), x.shape().dims().begin() + 1, x.shape().dims().end());
  call.results.push_back(rows.reshaped(Shape(std::move(dims))));
}

void boolean_mask(HostCall& call) {
  const Tensor& x = call.inputs[0];
  const auto mask = call.inputs[1].flat<bool>();
  row_elements(x);
  if (mask.size() != static_cast<size_t>(x.shape().dim(0))) {
    throw InvalidArgumentError(fmt::format("a mask of {} values for {} rows", mask.size(), x.shape().dim(0)));
  }
  std::vector<int64_t> rows;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) rows.push_back(static_cast<int64_t>(i));
  }
  call.results.push_back(gather_rows(x, rows));
}

void reshape(HostCall& call) {
  const Tensor& x = call.inputs[0];
  std::vector<int64_t> sizes = to_int64s(call.inputs[1]);
  int64_t known = 1, *open = nullptr;
  for (int64_t& size : sizes) {
    if (size < -1 || (size == -1 && open != nullptr)) throw InvalidArgumentError("one size can be -1, others not");
    if (size == -1) {
      open = &size;
    } else if (__builtin_mul_overflow(known, size, &known)) {
      throw InvalidArgumentError("the new shape does not fit in memory");
    }
  }
  if (open != nullptr && known != 0) *open = x.num_elements() / known;
  call.results.push_back(x.reshaped(Shape(std::move(sizes))));
}

void expand_dims(HostCall& call) {
  const Tensor& x = call.inputs[0];
  const int64_t rank = x.shape().rank(), given = call.inputs[1].item<int64_t>();
  if (given < -rank - 1 || given > rank) {
    throw InvalidArgumentError(fmt::format("dim {} for a tensor of {} dimensions", given, rank));
  }
  std::vector<int64_t> dims = x.shape().dims();
  dims.insert(dims.begin() + (given < 0 ? given + rank + 1 : given), 1);
  call.results.push_back(x.reshaped(Shape(std::move(dims))));
}

void pack_parts(HostCall& call) {
  const auto* axis = call.op.find_attr<int64_t>("axis");
  call.results.push_back(pack(call.inputs, axis == nullptr ? 0 : *axis));
}

}  // namespace

HostKernelTable array_host_kernels() {
  return {
      {
          {"RandomShuffle", named_errors<random_shuffle>},
          {"GatherV2", named_errors<gather>},
          {"BooleanMask", named_errors<boolean_mask>},
          {"Reshape", named_errors<reshape>},
          {"ExpandDims", named_errors<expand_dims>},
          {"Pack", named_errors<pack_parts>},
      },
      {},
  };
}

}  // namespace longhaul
