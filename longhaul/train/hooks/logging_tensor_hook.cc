#include "longhaul/train/hooks/logging_tensor_hook.h"

#include <fmt/ranges.h>

#include "longhaul/base/log.h"
#include "longhaul/train/hooks/hook_parts.h"

namespace longhaul {
namespace {

LoggingTensorHookOptions checked(LoggingTensorHookOptions options) {
  const auto& [tensors, iterations, seconds, at_end, formatter, clock] = options;
  if (tensors.empty()) throw InvalidArgumentError("LoggingTensorHook: there are no tensors to log");
  const bool only_at_end = at_end && !iterations && !seconds;
  if (!only_at_end && iterations.has_value() == seconds.has_value()) {
    throw InvalidArgumentError(
        "LoggingTensorHook: exactly one of every_n_iter and every_n_secs must be given, or at_end");
  }
  if (iterations && *iterations <= 0) {
    throw InvalidArgumentError(
        fmt::format("LoggingTensorHook: invalid every_n_iter {}: it must be positive", *iterations));
  }
  return options;
}

}  // namespace

LoggingTensorHook::LoggingTensorHook(LoggingTensorHookOptions options) : options_(checked(std::move(options))) {
  if (options_.every_n_iter || options_.every_n_secs) {
    timer_.emplace(TimerInterval{options_.every_n_secs, options_.every_n_iter}, options_.clock, "LoggingTensorHook");
  }
}

void LoggingTensorHook::begin(Graph& graph) {
  if (timer_) timer_->reset();
  runs_ = 0;
  args_ = {};
  for (const LoggedTensor& logged : options_.tensors)
    args_.fetches.push_back(output_of(graph, logged.tensor, "LoggingTensorHook"));
}

const SessionRunArgs* LoggingTensorHook::before_run(SessionRunContext&) {
  due_ = timer_ && timer_->should_trigger_for_step(runs_);
  return due_ ? &args_ : nullptr;
}

void LoggingTensorHook::after_run(SessionRunContext&, const SessionRunValues& values) {
  if (due_) log(values.results);
  ++runs_;
}

void LoggingTensorHook::end(Session& session) {
  if (options_.at_end) log(session.run(args_.fetches));
}

void LoggingTensorHook::log(std::span<const Tensor> values) {
  const auto elapsed = timer_ ? timer_->update_last_triggered_step(runs_) : std::nullopt;
  if (options_.formatter) {
    std::map<std::string, Tensor> by_tag;
    for (size_t i = 0; i < values.size(); ++i) by_tag.emplace(options_.tensors[i].tag, values[i]);
    log_info("{}", options_.formatter(by_tag));
    return;
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < values.size(); ++i) parts.push_back(options_.tensors[i].tag + " = " + text_of(values[i]));
  log_info("{}{}", fmt::join(parts, ", "), elapsed ? fmt::format(" ({:.3f} sec)", elapsed->time.count()) : "");
}

}  // namespace longhaul
