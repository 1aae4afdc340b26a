#include "longhaul/train/hooks/nan_tensor_hook.h"

#include <fmt/format.h>

#include <cmath>

#include "longhaul/base/log.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/reporting/logged_tensor.h"

namespace longhaul {

NanTensorHook::NanTensorHook(Fetch loss, NanTensorHookOptions options) : loss_(std::move(loss)), options_(options) {}

void NanTensorHook::begin(Graph& graph) {
  const Output loss = output_of(graph, loss_, "NanTensorHook");
  loss_name_ = loss.name();
  args_ = {.fetches = {loss}};
  if (const auto step = ops::get_global_step(graph)) args_.fetches.push_back(*step);
}

const SessionRunArgs* NanTensorHook::before_run(SessionRunContext&) {
  return &args_;
}

void NanTensorHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const double loss = values.results[0].item<double>();
  if (std::isfinite(loss) || (options_.let_infinity_pass && std::isinf(loss))) return;
  const std::string what = describe(values);
  if (options_.fail_on_nan_loss) {
    log_error("{}", what);
    throw NanLossDuringTrainingError(
        fmt::format("NaN loss during training. {} NanTensorHook fails because fail_on_nan_loss = true.", what));
  }
  log_warning("{} NanTensorHook stops training because fail_on_nan_loss = false.", what);
  context.request_stop();
}

// "Model diverged with loss = NaN (loss:0, in the run after global step 12)."
std::string NanTensorHook::describe(const SessionRunValues& values) const {
  const double loss = values.results[0].item<double>();
  const std::string value = std::isnan(loss) ? "NaN" : fmt::format("{}", loss);
  const std::string step = values.results.size() > 1
                               ? fmt::format(", in the run after global step {}", values.results[1].item<int64_t>())
                               : "";
  return fmt::format("Model diverged with loss = {} ({}{}).", value, loss_name_, step);
}

}  // namespace longhaul
