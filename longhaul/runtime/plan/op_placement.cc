#include "longhaul/runtime/plan/op_placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/runtime/aten/aten_call.h"
#include "longhaul/runtime/kernels/kernel.h"

namespace longhaul {
namespace {

constexpr int64_t kMostOfSmall = 16;  // elements
constexpr char kRemedy[] = ". Place it on /cpu:0 instead, or set SessionOptions::allow_soft_placement, which does so";

bool is_variable(const Operation& op) {
  return op.type() == "VariableV2";
}

bool is_small(const Output& value) {
  const int64_t elements = value.shape().num_elements();
  return elements >= 0 && elements <= kMostOfSmall;
}

// Of libtorch's operator that the operation calls; empty: it calls none.
std::string operator_of(const Operation& op) {
  if (op.type() == "TapeGradient") return op.attr<std::string>("forward");
  return op.type().starts_with("aten::") ? op.type() : "";
}

}  // namespace

OpPlacement::OpPlacement(SessionState& session, const NeededGraph& graph)
    : session_(session), graph_(graph), devices_(session.task().device_table()) {}

c10::Device OpPlacement::place(const Operation& op) {
  const std::optional<c10::Device> asked = asked_for(op);
  const c10::Device device = devices_.gpus() == 0 ? c10::Device(c10::kCPU) : choose(op, asked);
  if (!device.is_cpu()) placed_.emplace(op, device);
  note(op, device);
  return device;
}

void OpPlacement::note(const Operation& op, c10::Device device) {
  if (device.is_cpu() && !session_.allows_soft_placement() && !session_.logs_placement()) return;
  const DeviceSpec asked = DeviceSpec::parse(op.device());
  const std::string& name = devices_.name_of(device, asked);
  if (!device.is_cpu() || !devices_.has(asked)) moved_.emplace(op, name);
  session_.log_placement(op, name);
}

c10::Device OpPlacement::device_of(const Output& value) const {
  if (devices_.gpus() == 0 || graph_.is_fed(value)) return c10::kCPU;
  return is_variable(value.op()) ? place_of_variable(value.op()) : device_of_placed(value.op());
}

c10::Device OpPlacement::device_of_placed(const Operation& op) const {
  const auto found = placed_.find(op);
  return found == placed_.end() ? c10::Device(c10::kCPU) : found->second;
}

// nullopt: any.
std::optional<c10::Device> OpPlacement::asked_for(const Operation& op) const {
  if (op.device().empty()) return std::nullopt;
  const DeviceSpec spec = DeviceSpec::parse(op.device());
  if (const std::optional<c10::Device> found = devices_.find(spec)) return spec.type.empty() ? std::nullopt : found;
  if (session_.allows_soft_placement() && devices_.has(spec.without_type())) return c10::kCPU;
  const std::string task = DeviceSpec::parse(devices_.attributes().front().name).without_type().to_string();
  refuse(op, fmt::format("this session has {} of {}{}", devices_.short_names(), task,
                         devices_.has(spec.without_type()) ? kRemedy : ""));
}

c10::Device OpPlacement::choose(const Operation& op, std::optional<c10::Device> asked) const {
  if (is_variable(op)) return place_of_variable(op);
  if (op.type() == "Identity" || op.type() == "PlaceholderWithDefault") return device_of(op.inputs()[0]);
  if (!operator_of(op).empty()) return for_operator(op, asked);
  const Kernel* kernel = find_kernel(op.type());
  if (kernel != nullptr && kernel->place == KernelPlace::kOfVariable) return device_of(op.inputs()[0]);
  return c10::kCPU;
}

// It does not depend on the plan: all of them share the variable.
c10::Device OpPlacement::place_of_variable(const Operation& variable) const {
  const Output value = variable.output();
  const bool is_program_value = variable.find_attr<std::shared_ptr<HostFunction>>("program_value") != nullptr;
  if (is_program_value || !find_scalar_type(value.dtype()) || value.shape() == Shape{}) return c10::kCPU;
  return asked_for(variable).value_or(devices_.gpu(0));
}

c10::Device OpPlacement::for_operator(const Operation& op, std::optional<c10::Device> asked) const {
  if (asked && asked->is_cpu()) return c10::kCPU;
  const bool has_kernel = has_aten_kernel(operator_of(op), devices_.gpu(0));
  if (asked && has_kernel) return *asked;
  if (asked && !session_.allows_soft_placement())
    refuse(op, std::string("this libtorch has no kernel for it there") + kRemedy);
  if (!has_kernel || is_small_on_host(op)) return c10::kCPU;
  for (const Output& input : op.inputs()) {
    if (const c10::Device device = device_of(input); !device.is_cpu()) return device;
  }
  return devices_.gpu(0);
}

bool OpPlacement::is_small_on_host(const Operation& op) const {
  for (int i = 0; i < op.num_outputs(); ++i) {
    if (!is_small(op.output(i))) return false;
  }
  return std::all_of(op.inputs().begin(), op.inputs().end(),
                     [&](const Output& input) { return is_small(input) && device_of(input).is_cpu(); });
}

void OpPlacement::refuse(const Operation& op, const std::string& why) const {
  throw InvalidArgumentError(
      fmt::format("Cannot assign a device for operation {}: it was explicitly assigned to {}, but {}", op.name(),
                  op.device(), why));
}

}  // namespace longhaul
