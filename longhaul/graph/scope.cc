#include "longhaul/graph/scope.h"

namespace longhaul {

Scope Scope::sub(std::string_view name) const {
  return within(graph_->unique_name(prefix_ + std::string(name)).substr(prefix_.size()));
}

Scope Scope::within(std::string_view name) const {
  Scope inner = *this;
  const std::string step = std::string(name) + "/";
  inner.prefix_ += step;
  inner.variable_prefix_ += step;
  return inner;
}

Scope Scope::variable_scope(std::string_view name) const {
  if (name.empty()) return *this;
  const std::string step = std::string(name) + "/";
  Scope inner = sub(name);
  inner.variable_prefix_ = variable_prefix_ + step;
  inner.slot_prefix_ += step;
  return inner;
}

Scope Scope::outermost() const {
  Scope outer = *this;
  outer.prefix_ = outer.variable_prefix_ = outer.slot_prefix_ = "";
  return outer;
}

Scope Scope::without_control_dependencies() const {
  Scope inner = *this;
  inner.control_inputs_.clear();
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
