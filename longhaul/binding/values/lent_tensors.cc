#include "longhaul/binding/values/lent_tensors.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

namespace longhaul {
namespace {

// Averages may go at the very end of the program, so this stays.
struct Lent {
  std::mutex mutex;
  std::atomic<bool> was_used = false;
  std::atomic<size_t> count = 0;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> own;  // guarded by the mutex: with the memory of training

  static Lent& get() {
    static auto* lent = new Lent;
    return *lent;
  }
};

}  // namespace

// A snapshot in another thread may look at any moment, so from the first time on each look takes the mutex.
void lend_memory(const std::vector<std::pair<at::Tensor, at::Tensor>>& tensors_and_others) {
  Lent& lent = Lent::get();
  const std::lock_guard<std::mutex> lock(lent.mutex);
  lent.was_used = true;
  for (const auto& [tensor, other] : tensors_and_others) {
    lent.own[tensor.unsafeGetTensorImpl()] = tensor.detach();
    tensor.set_data(other);
  }
  lent.count = lent.own.size();
}

void give_back_memory(const std::vector<at::Tensor>& tensors) {
  Lent& lent = Lent::get();
  const std::lock_guard<std::mutex> lock(lent.mutex);
  for (const at::Tensor& tensor : tensors) {
    const auto own = lent.own.find(tensor.unsafeGetTensorImpl());
    if (own == lent.own.end()) continue;
    tensor.set_data(own->second);
    lent.own.erase(own);
  }
  lent.count = lent.own.size();
}

bool any_is_lent() {
  return Lent::get().count != 0;
}

bool is_lent(const at::Tensor& tensor) {
  Lent& lent = Lent::get();
  if (lent.count == 0) return false;
  const std::lock_guard<std::mutex> lock(lent.mutex);
  return lent.own.contains(tensor.unsafeGetTensorImpl());
}

at::Tensor own_memory_of(const at::Tensor& tensor) {
  Lent& lent = Lent::get();
  if (!lent.was_used) return tensor;
  const std::lock_guard<std::mutex> lock(lent.mutex);
  const auto own = lent.own.find(tensor.unsafeGetTensorImpl());
  return own == lent.own.end() ? tensor.detach() : own->second;
}

}  // namespace longhaul
