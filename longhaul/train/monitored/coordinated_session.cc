#include "longhaul/train/monitored/coordinated_session.h"

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/train/coordination/lost_session.h"
#include "longhaul/train/coordination/teardown.h"
#include "longhaul/train/hooks/hook_call.h"
#include "longhaul/train/input/queue_runner.h"

namespace longhaul {
namespace {

constexpr Seconds kLateAfterStop{10};

Coordinator make_coordinator(const Coordinator& parent) {
  return parent.child({.clean_stop = [](const std::exception_ptr&) { return false; }, .clock = &parent.clock()});
}

}  // namespace

CoordinatedSession::CoordinatedSession(std::shared_ptr<Session> session, const SessionRunHooks& hooks,
                                       const Coordinator& parent, Seconds stop_grace, const StopBudget& budget)
    : open_(parent),
      session_(std::move(session)),
      hooks_(hooks),
      coord_(make_coordinator(parent)),
      stop_grace_(stop_grace),
      budget_(budget),
      runs_(session_, hooks_) {}

CoordinatedSession::~CoordinatedSession() {
  if (const std::exception_ptr error = close()) {
    log_error("a thread of an abandoned session failed: {}", message_of(error));
  }
}

// A loop that asks should_stop() makes at most one such run, with what follows it.
void CoordinatedSession::note_late_run() {
  const Seconds now = coord_.clock().now();
  if (!first_late_run_) first_late_run_ = now;
  if (now - *first_late_run_ < kLateAfterStop || std::exchange(late_runs_are_known_, true)) return;
  log_warning(
      "a stop was requested {:.0f} s ago, but the program still calls run(): end its loop when session.should_stop() "
      "is true",
      (now - *first_late_run_).count());
}

void CoordinatedSession::start() {
  if (!queue_runners(session_->graph()).empty()) start_queue_runners(session_, coord_);
  for (const auto& hook : hooks_) {
    call_hook(*hook, "after_create_session", [&] { hook->after_create_session(*session_, coord_); });
  }
}

std::exception_ptr CoordinatedSession::cause_of(std::exception_ptr error) const {
  if (is_lost_session(error)) return error;
  const std::exception_ptr reported = reported_error();
  return is_lost_session(reported) ? reported : error;
}

void CoordinatedSession::end_hooks() {
  Teardown end;
  for (const auto& hook : hooks_) {
    end.step("the hooks", [&] { call_hook(*hook, "end", [&] { hook->end_before(*session_, budget_.deadline()); }); });
  }
  end.raise_error();
}

std::exception_ptr CoordinatedSession::stop_threads() {
  if (std::exchange(threads_stopped_, true)) return nullptr;
  try {
    coord_.request_stop();
    coord_.join(
        {.stop_grace = stop_grace_, .ignore_live_threads = true, .give_up_at = budget_.half_time(coord_.clock())});
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::exception_ptr CoordinatedSession::close() {
  if (std::exchange(closed_, true)) return nullptr;
  const std::exception_ptr error = stop_threads();
  try {
    session_->close_before(budget_.deadline());
  } catch (const std::exception& close_error) {
    log_warning("a session could not be closed: {}", close_error.what());
  }
  return error;
}

}  // namespace longhaul
