#include "longhaul/cluster/master/cluster_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/session/step_trace.h"

namespace longhaul {
namespace {

// After an error: how long its cause may come later, a task may tell what became of the step, and the death of a task
// may be noticed that others could not reach.
constexpr Seconds kCauseComes{1};
constexpr Seconds kOutcomeComes{1};
constexpr Seconds kDeathIsNoticed{0.5};
// After a cancel: how long the commits of a step may take that is decided.
constexpr Seconds kCommitsEnd{10};

// Whoever gets it may make the step again, and must know whether it was made.
bool may_be_repeated(Code code) {
  return code == Code::kDeadlineExceeded || code == Code::kCancelled || code == Code::kUnavailable ||
         code == Code::kAborted;
}

std::exception_ptr error_of_step(Code code, const std::string& text) {
  try {
    throw_error(code, text);
  } catch (...) {
    return std::current_exception();
  }
}

// What the one task that commits has answered to Abort; nullopt: nothing within the limits. `aborts` has a call to each
// part.
std::optional<bool> was_committed(const ClusterRun& run, CallGroup& aborts, const WaitLimits& limits) {
  while (const auto ended = aborts.next(limits)) {
    if (!run.parts[ended->call].commits || ended->reply.error != nullptr) continue;
    return header_of<proto::AbortReply>(ended->reply.message, "Abort").state() == proto::STEP_COMMITTED;
  }
  return std::nullopt;
}

const char* fate_text(StepFate fate) {
  if (fate == StepFate::kCommitted) return "The step was committed: it takes place on all its tasks.";
  if (fate == StepFate::kNotCommitted) return "The step was not committed: no variable was changed.";
  return "Whether the step was committed is not known.";
}

// Of a step that is decided.
WaitLimits limits_after_cancel(SessionTasks& tasks, Seconds deadline) {
  const Seconds end = tasks.transport().clock().now() + kCommitsEnd;
  return {.deadline = deadline.count() != 0 ? std::min(deadline, end) : end, .cancellation = &tasks.cancellation()};
}

// An error of the deadline says where the step was.
std::exception_ptr with_places(const std::exception_ptr& error, const std::string& places) {
  if (places.empty() || code_of(error) != Code::kDeadlineExceeded) return error;
  return error_of_step(Code::kDeadlineExceeded, fmt::format("{}\nWhere the step was:\n{}", message_of(error), places));
}

// Returns how many values there are without the trace, which a task of an older version leaves out.
size_t take_trace(const ClusterRun::Part& part, const std::vector<Tensor>& values, proto::StepStats* trace) {
  const bool has_trace = values.size() == part.fetches.size() + 1 && values.back().dtype() == kString &&
                         values.back().shape().num_elements() == 1;
  if (!has_trace) {
    log_warning("task {} has recorded nothing of a traced run", part.task);
    return values.size();
  }
  add_part_trace(part.task, values.back().flat<std::string>()[0], trace);
  return values.size() - 1;
}

// The tasks are asked when they can be reached again, by whoever would make the step again.
void note_doubt(SessionTasks& tasks, const ClusterRun& run, int64_t step) {
  std::vector<proto::Participant> committing;
  for (const ClusterRun::Part& part : run.parts) {
    if (!part.commits) continue;
    proto::Participant& participant = committing.emplace_back();
    participant.set_task(part.task);
    participant.set_incarnation(tasks.incarnation(part.task));
  }
  tasks.doubtful_steps().add(step, std::move(committing));
}

}  // namespace

ClusterStep::ClusterStep(std::shared_ptr<SessionTasks> tasks, std::shared_ptr<const ClusterRun> run,
                         const WaitLimits& limits, std::string snapshot, proto::StepStats* trace)
    : tasks_(std::move(tasks)),
      run_(std::move(run)),
      limits_(limits),
      snapshot_(std::move(snapshot)),
      trace_(trace),
      step_(tasks_->new_step()),
      slow_(tasks_, run_, step_, limits_.deadline),
      calls_(tasks_->transport()),
      results_(run_->fetches) {}

std::vector<Tensor> ClusterStep::run(std::span<const Tensor* const> feeds) {
  for (const auto& [fetch, feed] : run_->fetched_feeds)
    results_[static_cast<size_t>(fetch)] = *feeds[static_cast<size_t>(feed)];
  try {
    start_parts(feeds);
    while (run_->is_joint() && progress_.prepared < run_->commits) await_answer();
    if (run_->is_joint()) start_commits();
    while (calls_.under_way() > 0) await_answer();
  } catch (...) {
    fail(std::current_exception());
  }
  for (const Part& part : run_->parts) tasks_->add_finished(part.task, step_);
  return std::move(results_);
}

void ClusterStep::start_parts(std::span<const Tensor* const> feeds) {
  for (const Part& part : run_->parts) {
    proto::RunPartRequest request = part.request;
    request.set_step(step_);
    request.set_snapshot(snapshot_);
    request.set_trace(trace_ != nullptr);
    for (const int64_t step : tasks_->take_finished(part.task)) request.add_cleanup(step);
    std::vector<Tensor> values;
    for (const RunPart::Named& feed : part.feeds) values.push_back(*feeds[static_cast<size_t>(feed.index)]);
    parts_.push_back(parts_.size());
    calls_.start(tasks_->request_to(part.task, methods::kRunPart, to_message(request, std::move(values))),
                 limits_.deadline);
  }
}

// From here on the step takes place, whatever happens: so these calls have no deadline.
void ClusterStep::start_commits() {
  progress_.is_decided = true;
  proto::CommitRequest request;
  request.set_step(step_);
  for (size_t i = 0; i < run_->parts.size(); ++i) {
    if (!run_->parts[i].commits) continue;
    parts_.push_back(i);
    calls_.start(tasks_->request_to(run_->parts[i].task, methods::kCommit, to_message(request)));
  }
}

std::optional<CallGroup::Ended> ClusterStep::next_answer() {
  for (;;) {
    const Seconds look = slow_.next();
    const bool looks_first = limits_.deadline.count() == 0 || look < limits_.deadline;
    auto ended = calls_.next({.deadline = looks_first ? look : limits_.deadline, .cancellation = limits_.cancellation});
    if (ended || !looks_first || limits_.cancellation->cancelled()) return ended;
    slow_.look();
  }
}

void ClusterStep::await_answer() {
  auto ended = next_answer();
  if (!ended && progress_.is_decided && limits_.cancellation->cancelled())
    ended = calls_.next(limits_after_cancel(*tasks_, limits_.deadline));
  if (!ended) interrupted();
  if (ended->reply.error == nullptr) return take_answer(*ended);
  failed_task_ = part_of(ended->call).task;
  // What follows the writes has failed, or the task could not be asked.
  const bool has_answered = ended->reply.incarnation != 0 && code_of(ended->reply.error) != Code::kAborted;
  if (is_commit(ended->call) && has_answered) progress_.has_committed = true;
  std::rethrow_exception(ended->reply.error);
}

void ClusterStep::take_answer(const CallGroup::Ended& ended) {
  const Part& part = part_of(ended.call);
  if (!is_commit(ended.call) && part.commits) {
    const auto reply = header_of<proto::RunPartReply>(ended.reply.message, "RunPart");
    if (!reply.training_ended_by().empty()) tasks_->tell_unsaved_steps(reply.training_ended_by());
    const bool is_prepared = reply.is_prepared();
    if (is_prepared != run_->is_joint())
      throw InternalError(fmt::format("task {} has not kept to the commit of step {}", part.task, step_));
    if (is_prepared) ++progress_.prepared;
    if (is_prepared) return;
  }
  if (part.commits) progress_.has_committed = true;
  const std::vector<Tensor>& values = ended.reply.message.tensors;
  const size_t count = trace_ != nullptr ? take_trace(part, values, trace_) : values.size();
  if (count != part.fetches.size())
    throw InternalError(
        fmt::format("task {} has answered {} values of step {}, not {}", part.task, count, step_, part.fetches.size()));
  for (size_t i = 0; i < count; ++i) results_[static_cast<size_t>(part.fetches[i].index)] = values[i];
}

void ClusterStep::interrupted() {
  limits_.cancellation->check();
  size_t silent = 0;
  while (calls_.has_ended(silent)) ++silent;
  const std::string& task = part_of(silent).task;
  const char* method = is_commit(silent) ? methods::kCommit : methods::kRunPart;
  const Transport& transport = tasks_->transport();
  throw DeadlineExceededError(
      unanswered_text(task, transport.address_of(task), method, transport.clock().now() - slow_.began()));
}

void ClusterStep::fail(std::exception_ptr error) {
  CallGroup aborts(tasks_->transport());
  const std::string places = slow_.report();  // before the aborts
  abort_others(error, aborts);
  error = with_places(loss_behind(cause_of(error)), places);
  const StepFate outcome = outcome_after(error, aborts);
  aborts.leave();
  if (progress_.is_decided) {
    calls_.leave();
  } else {
    for (const Part& part : run_->parts) tasks_->add_finished(part.task, step_);
  }
  const Code code = code_of(error);
  if (!run_->writes() || !(may_be_repeated(code) || outcome == StepFate::kCommitted)) std::rethrow_exception(error);
  if (outcome != StepFate::kNotCommitted) note_doubt(*tasks_, *run_, step_);
  throw_error(code, fmt::format("{}\n{}", message_of(error), fate_text(outcome)), {outcome, step_});
}

void ClusterStep::abort_others(const std::exception_ptr& error, CallGroup& aborts) {
  proto::AbortRequest request;
  request.set_step(step_);
  *request.mutable_error() = to_error_body(error);
  for (const Part& part : run_->parts) {
    if (progress_.is_decided && part.commits) continue;
    aborts.start(tasks_->request_to(part.task, methods::kAbort, to_message(request)));
  }
}

// A consequence may arrive before its cause. A part that comes after its abort is told so by AbortedError.
std::exception_ptr ClusterStep::cause_of(std::exception_ptr error) {
  const WaitLimits limits{.deadline = tasks_->transport().clock().now() + kCauseComes,
                          .cancellation = limits_.cancellation};
  while (is_consequence(error)) {
    const auto ended = calls_.next(limits);
    if (!ended) break;
    const Code code = code_of(ended->reply.error);
    if (code == Code::kOk || code == Code::kAborted || is_consequence(ended->reply.error)) continue;
    failed_task_ = part_of(ended->call).task;
    error = ended->reply.error;
  }
  return error;
}

// The same error, or that of the session: a task may be lost that has not answered, or that others could not reach.
std::exception_ptr ClusterStep::loss_behind(std::exception_ptr error) {
  const Code code = code_of(error);
  const bool is_cut = code == Code::kUnavailable || code == Code::kAborted;
  if (!is_cut && !is_consequence(error)) return error;
  tasks_->wait_for_loss(kDeathIsNoticed);
  try {
    tasks_->cancellation().check();
  } catch (...) {
    return std::current_exception();
  }
  if (code != Code::kAborted) return error;
  // The tasks of a snapshot were frozen for too long; those of another step have lost what it needs.
  if (run_->is_snapshot) return error_of_step(Code::kUnavailable, message_of(error));
  tasks_->lose(failed_task_, error);
  return error;
}

StepFate ClusterStep::outcome_after(const std::exception_ptr& error, CallGroup& aborts) {
  if (progress_.has_committed) return StepFate::kCommitted;
  // Tasks that the commits do not reach, all of them, may agree that they never came.
  if (progress_.is_decided) return StepFate::kNotKnown;
  if (!run_->writes() || run_->is_joint()) return StepFate::kNotCommitted;
  // A task that was lost will not answer.
  const Seconds timeout = code_of(error) == Code::kAborted ? Seconds{0} : kOutcomeComes;
  const auto known = was_committed(*run_, aborts, {.deadline = tasks_->transport().clock().now() + timeout});
  if (!known) return StepFate::kNotKnown;
  return *known ? StepFate::kCommitted : StepFate::kNotCommitted;
}

}  // namespace longhaul
