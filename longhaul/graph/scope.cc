#include "longhaul/graph/scope.h"

#include <algorithm>

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
  const DeviceSpec spec = DeviceSpec::parse(device);
  DeviceSpec* last = inner.devices_.empty() ? nullptr : std::get_if<DeviceSpec>(&inner.devices_.back());
  if (last != nullptr) {
    *last = last->merged_with(spec);
  } else if (spec != DeviceSpec()) {
    inner.devices_.emplace_back(spec);
  }
  return inner;
}

Scope Scope::with_device(DeviceFunction function) const {
  if (!function) return with_device(nullptr);
  Scope inner = *this;
  inner.devices_.emplace_back(std::make_shared<const DeviceFunction>(std::move(function)));
  return inner;
}

Scope Scope::with_device(std::nullptr_t) const {
  Scope inner = *this;
  inner.devices_.clear();
  return inner;
}

Scope Scope::on_device_of(const Operation& op) const {
  if (!op.valid() || &op.graph() != graph_) {
    throw InvalidArgumentError("operations can only be colocated with an operation of their own graph, not with " +
                               (op.valid() ? op.name() : std::string("an empty Operation")));
  }
  Scope inner = with_device(nullptr).with_device(op.device());
  inner.colocations_.clear();
  return inner;
}

Scope Scope::colocate_with(const Operation& op) const {
  Scope inner = on_device_of(op);
  inner.colocations_ = colocations_;
  inner.colocations_.push_back("loc:@" + op.name());
  std::sort(inner.colocations_.begin(), inner.colocations_.end());
  inner.colocations_.erase(std::unique(inner.colocations_.begin(), inner.colocations_.end()), inner.colocations_.end());
  return inner;
}

Scope Scope::with_control_dependencies(std::vector<Operation> operations) const {
  Scope inner = *this;
  inner.control_inputs_.insert(inner.control_inputs_.end(), operations.begin(), operations.end());
  return inner;
}

std::string Scope::chosen_device(const Device& device, const OperationSpec& op) {
  if (const auto* spec = std::get_if<DeviceSpec>(&device)) {
    return spec->merged_with(DeviceSpec::parse(op.device)).to_string();
  }
  const std::string chosen = (*std::get<std::shared_ptr<const DeviceFunction>>(device))(op);
  return DeviceSpec::parse(chosen).to_string();
}

void Scope::add_colocations(OperationSpec* op) const {
  if (!colocations_.empty()) op->attrs.try_emplace("_class", colocations_);
}

Operation Scope::add(std::string type, std::string_view name, std::vector<Output> inputs, Attrs attrs) const {
  OperationSpec op{.type = std::move(type),
                   .name = prefix_ + std::string(name),
                   .inputs = std::move(inputs),
                   .attrs = std::move(attrs),
                   .control_inputs = control_inputs_};
  for (auto device = devices_.rbegin(); device != devices_.rend(); ++device) op.device = chosen_device(*device, op);
  op.follows_references = !devices_.empty();
  add_colocations(&op);
  return graph_->add_operation(std::move(op));
}

}  // namespace longhaul
