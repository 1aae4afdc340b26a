#include "longhaul/graph/scope.h"

namespace longhaul {

Scope Scope::sub(std::string_view name) const {
  Scope inner = *this;
  inner.prefix_ = graph_->unique_name(prefix_ + std::string(name)) + "/";
  return inner;
}

Scope Scope::within(std::string_view name) const {
  Scope inner = *this;
  inner.prefix_ += std::string(name) + "/";
  return inner;
}

Scope Scope::with_device(std::string_view device) const {
  Scope inner = *this;
  inner.device_ = device_.merged_with(DeviceSpec::parse(device));
  return inner;
}

Scope Scope::with_control_dependencies(std::vector<Operation> operations) const {
  Scope inner = *this;
  inner.control_inputs_.insert(inner.control_inputs_.end(), operations.begin(), operations.end());
  return inner;
}

Operation Scope::add(std::string type, std::string_view name, std::vector<Output> inputs, Attrs attrs) const {
  return graph_->add_operation({.type = std::move(type),
                                .name = prefix_ + std::string(name),
                                .inputs = std::move(inputs),
                                .attrs = std::move(attrs),
                                .control_inputs = control_inputs_,
                                .device = device_.to_string()});
}

}  // namespace longhaul
