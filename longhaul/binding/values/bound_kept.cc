#include "longhaul/binding/values/bound_kept.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "longhaul/base/error.h"

namespace longhaul {

void throw_inconsistent(const std::string& name, const std::string& failed_step) {
  throw FailedPreconditionError(
      fmt::format("{}: a step failed after it had changed part of the module ({}), so there is no consistent state to "
                  "save. Restore a checkpoint",
                  name, failed_step));
}

void BoundKept::begin() {
  written_between_.reset();
  for (Bound& bound : values_) {
    bound.before = bound.value.look();
    if (bound.is_known && bound.before != bound.after && !written_between_) written_between_ = bound.value.name;
    bound.is_known = false;
  }
}

void BoundKept::end() {
  for (Bound& bound : values_) {
    bound.after = bound.value.look();
    bound.is_known = true;
  }
}

void BoundKept::abandon(const std::string& failed_step) {
  for (Bound& bound : values_) {
    bound.is_known = false;
    if (!failed_step.empty()) bound.failed_step = failed_step;
  }
}

Tensor BoundKept::read(const Bound& bound) {
  if (!bound.failed_step.empty()) throw_inconsistent("kept/" + bound.value.name, bound.failed_step);
  return bound.value.read();
}

void BoundKept::assign(Bound& bound, const Tensor& saved) {
  if (!kept::is_lacking(saved)) bound.value.assign(saved);
  bound.failed_step.clear();
  bound.is_known = false;
}

void BoundKept::add_short_to(std::map<std::string, std::string>& bytes) const {
  for (const Bound& bound : values_) {
    if (!bound.value.is_short) continue;
    const Tensor now = bound.value.read();
    bytes["kept/" + bound.value.name] = now.dtype() == kString
                                            ? now.flat<std::string>()[0]
                                            : std::string(static_cast<const char*>(now.data()), now.size_bytes());
  }
}

void BoundKept::assign_short(const std::map<std::string, std::string>& bytes) {
  for (Bound& bound : values_) {
    const auto found = bytes.find("kept/" + bound.value.name);
    if (!bound.value.is_short || found == bytes.end()) continue;
    Tensor value = bound.value.read();
    if (value.dtype() == kString) {
      value = Tensor::scalar(found->second);
    } else if (value.size_bytes() != found->second.size()) {
      throw InvalidArgumentError(fmt::format("{} must have {} bytes", found->first, found->second.size()));
    } else {
      std::memcpy(value.mutable_data(), found->second.data(), value.size_bytes());
    }
    bound.value.check(value);
    bound.value.assign(value);
  }
}

bool BoundKept::changed() const {
  return std::any_of(values_.begin(), values_.end(),
                     [](const Bound& bound) { return bound.value.look() != bound.before; });
}

}  // namespace longhaul
