#include "longhaul/runtime/plan/wanted_inputs.h"

#include "longhaul/runtime/aten/aten_call.h"
#include "longhaul/runtime/kernels/kernel.h"
#include "longhaul/runtime/kernels/tape_gradient.h"

namespace longhaul {
namespace {

using Wanted = std::vector<std::optional<c10::Device>>;

Wanted wanted_by_call(const AtenCall& call, const Operation& op, c10::Device device) {
  const std::vector<bool> on_host = inputs_on_host(call, op.inputs().size());
  Wanted wanted;
  for (const bool host : on_host) wanted.emplace_back(host ? c10::Device(c10::kCPU) : device);
  return wanted;
}

Wanted wanted_by_kernel(const Kernel& kernel, const Operation& op, c10::Device device) {
  if (kernel.place == KernelPlace::kHostForAny) return Wanted(op.inputs().size());
  Wanted wanted(op.inputs().size(), c10::Device(c10::kCPU));
  if (kernel.input_with_variable >= 0) wanted[static_cast<size_t>(kernel.input_with_variable)] = device;
  return wanted;
}

}  // namespace

Wanted wanted_inputs(const Operation& op, c10::Device device) {
  if (op.type() == "Identity" || op.type() == "PlaceholderWithDefault") return Wanted(op.inputs().size());
  if (op.type() == "TapeGradient") return wanted_by_call(forward_call_of(op), op, device);
  if (op.type().starts_with("aten::")) {
    const auto call = bind_aten_call({op.type(), op.name(), op.inputs(), op.attrs(), {}, {}});
    if (call) return wanted_by_call(*call, op, device);
  }
  const Kernel* kernel = find_kernel(op.type());
  return kernel != nullptr ? wanted_by_kernel(*kernel, op, device) : Wanted(op.inputs().size(), c10::Device(c10::kCPU));
}

}  // namespace longhaul
