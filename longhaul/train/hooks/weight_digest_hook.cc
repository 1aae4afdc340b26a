#include "longhaul/train/hooks/weight_digest_hook.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/reporting/run_events.h"

namespace longhaul {

WeightDigestHook::WeightDigestHook(WeightDigestHookOptions options) : options_(std::move(options)) {
  if (options_.every_n_steps <= 0) {
    throw InvalidArgumentError(
        fmt::format("WeightDigestHook: every_n_steps must be positive, not {}", options_.every_n_steps));
  }
  if (options_.summary_writer == nullptr && options_.output_dir.empty()) {
    throw InvalidArgumentError("WeightDigestHook has nowhere to write: pass an output_dir or a summary_writer");
  }
}

void WeightDigestHook::begin(Graph& graph) {
  step_.find(graph, "WeightDigestHook");
  writer_ = hook_writer(options_.summary_writer, options_.output_dir, options_.files, options_.clock);
  digests_ = std::make_unique<WeightDigests>(graph, step_.tensor(), writer_);
}

void WeightDigestHook::after_create_session(Session& session, const Coordinator&) {
  last_.reset();
  digests_->take_if_due(session, options_.every_n_steps);
}

const SessionRunArgs* WeightDigestHook::before_run(SessionRunContext&) {
  return &step_.args();
}

void WeightDigestHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const int64_t before = HookStep::before_the_run(values), every = options_.every_n_steps;
  if (!last_) last_ = before;
  if ((before + 1) / every == *last_ / every) return;
  const int64_t now = step_.now(context.session());
  if (now / every == *last_ / every) return;  // the run made no step
  digests_->take(context.session());
  last_ = now;
}

void WeightDigestHook::end(Session&) {
  const Deadline* const deadline = std::exchange(deadline_, nullptr);
  digests_->finish(deadline);
  flush_or_log(*writer_, deadline);
}

void WeightDigestHook::end_before(Session& session, const Deadline* deadline) {
  deadline_ = deadline;
  end(session);
}

}  // namespace longhaul
