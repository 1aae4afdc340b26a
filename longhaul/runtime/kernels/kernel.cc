#include "longhaul/runtime/kernels/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace longhaul {
namespace {

std::unordered_map<std::string, Kernel> all_kernels() {
  std::unordered_map<std::string, Kernel> all;
  for (const KernelTable& table :
       {state_kernels(), optimizer_kernels(), sparse_kernels(), save_restore_kernels(), function_kernels()}) {
    all.insert(table.begin(), table.end());
  }
  return all;
}

}  // namespace

Value KernelContext::take_input(int i) {
  const int slot = inputs_[static_cast<size_t>(i)];
  Value& value = slots_[static_cast<size_t>(slot)];
  const bool last = std::find(last_uses_.begin(), last_uses_.end(), slot) != last_uses_.end();
  return last && std::count(inputs_.begin(), inputs_.end(), slot) == 1 ? std::move(value) : value;
}

bool KernelContext::output_needed(int i) const {
  return std::find(last_uses_.begin(), last_uses_.end(), first_output_ + i) == last_uses_.end();
}

void KernelContext::refuse(const std::string& why) const {
  throw InvalidArgumentError(fmt::format("{} ({}): {}", op_.name(), op_.type(), why));
}

const Kernel* find_kernel(const std::string& type) {
  static const auto* kernels = new std::unordered_map<std::string, Kernel>(all_kernels());
  const auto it = kernels->find(type);
  return it == kernels->end() ? nullptr : &it->second;
}

}  // namespace longhaul
