#include "longhaul/binding/values/bound_tensors.h"

#include <fmt/format.h>

#include <mutex>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

// Of all bindings. Graphs may go at the very end of the program, so this stays.
struct AllBound {
  std::mutex mutex;
  std::unordered_set<const c10::TensorImpl*> tensors;  // guarded by the mutex

  static AllBound& get() {
    static auto* all = new AllBound;
    return *all;
  }
};

}  // namespace

BoundTensors::~BoundTensors() {
  AllBound& all = AllBound::get();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const c10::TensorImpl* tensor : own_) all.tensors.erase(tensor);
}

void BoundTensors::add(const std::string& name, const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (own_.contains(impl)) return;
  AllBound& all = AllBound::get();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!all.tensors.insert(impl).second) {
    throw AlreadyExistsError(
        fmt::format("{} is already bound, and the graph that it is bound to still exists. Bind a module once, or "
                    "release the other graph first",
                    name));
  }
  own_.insert(impl);
  streams_.add(tensor);
}

bool BoundTensors::any_has(const at::Tensor& tensor) {
  AllBound& all = AllBound::get();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.tensors.contains(tensor.unsafeGetTensorImpl());
}

}  // namespace longhaul
