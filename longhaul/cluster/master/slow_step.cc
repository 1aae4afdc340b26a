#include "longhaul/cluster/master/slow_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/methods.h"

namespace longhaul {
namespace {

constexpr Seconds kAnswersCome{2};  // before they are told
constexpr Seconds kLastLook{1};     // before the deadline, at most

std::string operation_text(const std::string& task, const proto::LookAtStepReply& reply) {
  const std::string operation = fmt::format("{} ({})", excerpt(reply.operation()), excerpt(reply.type()));
  const std::string where = task + excerpt(reply.device());
  const std::string what = reply.peer().empty() ? fmt::format("runs {} on {}", operation, where)
                                                : fmt::format("waits for a value from task {}: {} on {}",
                                                              excerpt(reply.peer()), operation, where);
  return fmt::format("{}, for {:.3g} s at least", what, reply.operation_secs());
}

std::string waiting_text(const proto::LookAtStepReply& reply) {
  if (reply.place() == proto::PLACE_SENDS) return "waits until other tasks have what it has sent";
  if (reply.place() == proto::PLACE_VERDICT) return "is prepared, and waits for the other tasks";
  if (reply.place() == proto::PLACE_GATE) return "waits at the gate, to write";
  return "has begun no operation";
}

}  // namespace

std::string place_text(const std::string& task, const proto::LookAtStepReply& reply) {
  if (reply.is_over()) return reply.state() == proto::STEP_ABORTED ? "has aborted its part" : "has done its part";
  if (reply.state() == proto::STEP_UNKNOWN) return "has not got its part";
  return fmt::format("{}; its part came {:.3g} s ago",
                     reply.operation().empty() ? waiting_text(reply) : operation_text(task, reply), reply.secs());
}

SlowStep::SlowStep(std::shared_ptr<SessionTasks> tasks, std::shared_ptr<const ClusterRun> run, int64_t step,
                   Seconds deadline)
    : tasks_(std::move(tasks)),
      run_(std::move(run)),
      step_(step),
      began_(tasks_->transport().clock().now()),
      next_doubling_(began_ + kFirstLook) {
  if (deadline.count() == 0) return;
  const Seconds left = deadline - began_;
  before_deadline_ = {began_ + left / 2, deadline - std::min(kLastLook, left / 10)};
}

Seconds SlowStep::next() const {
  Seconds next = next_doubling_;
  for (const std::optional<Seconds>& time : {before_deadline_[0], before_deadline_[1], tell_}) {
    if (time) next = std::min(next, *time);
  }
  return next;
}

void SlowStep::look() {
  const Seconds now = tasks_->transport().clock().now();
  if (tell_ && now >= *tell_) {
    tell_.reset();
    log_warning("a step has taken {:.3g} s so far:\n{}", (now - began_).count(), report());
  }
  bool is_due = false;
  for (std::optional<Seconds>& time : before_deadline_) {
    if (!time || now < *time) continue;
    time.reset();
    is_due = true;
  }
  if (now >= next_doubling_) {
    if (now > began_ + kFirstLook * 1.5) tell_ = now + kAnswersCome;
    next_doubling_ = began_ + 2 * (now - began_);
    is_due = true;
  }
  if (is_due) ask(now);
}

void SlowStep::ask(Seconds now) {
  take_answers();
  if (!calls_) calls_.emplace(tasks_->transport(), /*timeout=*/Seconds{0});
  answers_.resize(run_->parts.size());
  proto::LookAtStepRequest request;
  request.set_step(step_);
  for (size_t part = 0; part < answers_.size(); ++part) {
    if (answers_[part].asked) continue;
    answers_[part].asked = now;
    asked_.push_back(part);
    calls_->start(tasks_->request_to(run_->parts[part].task, methods::kLookAtStep, to_message(request)));
  }
}

void SlowStep::take_answers() {
  if (!calls_) return;
  while (const auto ended = calls_->next({.deadline = tasks_->transport().clock().now()})) {
    const size_t part = asked_[ended->call];
    Answer& answer = answers_[part];
    answer.asked.reset();
    if (ended->reply.error != nullptr) {
      answer.text = "does not say where it is: " + excerpt(message_of(ended->reply.error), 1000);
      continue;
    }
    proto::LookAtStepReply reply;
    try {
      reply = header_of<proto::LookAtStepReply>(ended->reply.message, "LookAtStep");
      answer.text = place_text(run_->parts[part].task, reply);
    } catch (const Error& error) {
      answer.text = std::string("does not say where it is: ") + error.what();
    }
  }
}

std::string SlowStep::line(size_t part, Seconds now) const {
  const Answer& answer = answers_[part];
  const std::string& task = run_->parts[part].task;
  if (!answer.asked) return fmt::format("  task {} {}", task, answer.text);
  return fmt::format("  task {} has not said for {:.3g} s where it is{}{}", task, (now - *answer.asked).count(),
                     answer.text.empty() ? "" : "; before that it said that it ", answer.text);
}

std::string SlowStep::report() {
  take_answers();
  const Seconds now = tasks_->transport().clock().now();
  std::string lines;
  for (size_t part = 0; part < answers_.size(); ++part) {
    if (part > 0) lines += '\n';
    lines += line(part, now);
  }
  return lines;
}

}  // namespace longhaul
