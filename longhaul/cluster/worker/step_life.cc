#include "longhaul/cluster/worker/step_life.h"

#include <fmt/format.h>

#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {

std::exception_ptr StepLife::not_prepared() const {
  return std::make_exception_ptr(FailedPreconditionError(
      fmt::format("step {} cannot be committed: its part on this task is not prepared", call_.step)));
}

StepOutcome StepLife::outcome() const {
  return {.state = state_, .is_over = is_over_, .error = error_, .results = results_};
}

bool StepLife::may_answer_run() const {
  return is_over_ || (call_.joint && state_ != proto::STEP_RUNNING);
}

// A run is answered before what comes later, so that the order of the replies is that of the events.
void StepLife::answer(bool over) {
  Replies replies;
  StepOutcome now;
  {
    MutexLock lock(mutex_);
    const auto take = [&](Replies& from) {
      replies.insert(replies.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
      from.clear();
    };
    if (may_answer_run()) take(run_);
    if (has_written_ || is_over_) take(written_);
    if (over) take(over_);
    now = outcome();
  }
  for (const Reply& reply : replies) reply(now);
}

void StepLife::when_run(Reply reply) {
  bool over = false;
  {
    MutexLock lock(mutex_);
    run_.push_back(std::move(reply));
    over = is_over_;
  }
  answer(over);
}

void StepLife::commit(Reply reply) {
  bool over = false;
  {
    MutexLock lock(mutex_);
    if (state_ == proto::STEP_RUNNING) std::rethrow_exception(not_prepared());
    if (state_ == proto::STEP_PREPARED && !is_in_doubt_) state_ = proto::STEP_COMMITTED;
    over_.push_back(std::move(reply));
    over = is_over_;
    changed_.notify_all();
  }
  answer(over);
}

void StepLife::commit_as_others(const std::string& snapshot, Reply reply) {
  std::function<void(const std::string&)> let_in;
  {
    MutexLock lock(mutex_);
    if (state_ == proto::STEP_RUNNING) std::rethrow_exception(not_prepared());
    if (!has_written_) let_in = let_in_;
  }
  if (let_in) let_in(snapshot);
  bool over = false;
  {
    MutexLock lock(mutex_);
    if (state_ == proto::STEP_PREPARED) state_ = proto::STEP_COMMITTED;
    written_.push_back(std::move(reply));
    over = is_over_;
    changed_.notify_all();
  }
  answer(over);
}

void StepLife::keep(const std::exception_ptr& error) {
  if (error_ == nullptr || (is_consequence(error_) && !is_consequence(error))) error_ = error;
}

std::function<void(std::exception_ptr)> StepLife::set_aborted(const std::exception_ptr& error) {
  state_ = proto::STEP_ABORTED;
  is_in_doubt_ = false;
  keep(error);
  changed_.notify_all();
  return std::exchange(end_waits_, {});
}

// What follows the writes of a committed step waits for nothing any more.
proto::StepState StepLife::abort_if(bool even_prepared, const std::exception_ptr& error) {
  std::function<void(std::exception_ptr)> end_waits;
  proto::StepState found;
  {
    MutexLock lock(mutex_);
    if (state_ == proto::STEP_PREPARED && !even_prepared) return state_;
    if (state_ == proto::STEP_COMMITTED && !is_over_) {
      keep(error);
      end_waits = std::exchange(end_waits_, {});
    } else if (!is_over_) {
      end_waits = set_aborted(error);
    }
    found = state_;
  }
  if (end_waits) end_waits(error);
  return found;
}

proto::StepState StepLife::abort(std::exception_ptr error) {
  return abort_if(/*even_prepared=*/true, error);
}

void StepLife::give_up(std::exception_ptr error) {
  abort_if(/*even_prepared=*/false, error);
}

void StepLife::lose_master(const std::string& why) {
  const auto error = std::make_exception_ptr(ConsequenceError(Code::kAborted, why));
  if (abort_if(/*even_prepared=*/false, error) != proto::STEP_PREPARED) return;
  MutexLock lock(mutex_);
  is_in_doubt_ = state_ == proto::STEP_PREPARED;
  changed_.notify_all();
}

StepOutcome StepLife::ask(bool resolve) {
  if (resolve) lose_master("another participant of the step has lost the step's master");
  MutexLock lock(mutex_);
  const proto::StepState state = was_dropped_ ? proto::STEP_PREPARED : state_;
  return {.state = state, .is_over = is_over_, .error = error_, .results = {}};
}

void StepLife::resolve(bool commit, const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (!is_in_doubt_ || state_ != proto::STEP_PREPARED) return;
    if (commit) {
      state_ = proto::STEP_COMMITTED;
      is_in_doubt_ = false;
      changed_.notify_all();
      return;
    }
  }
  abort(std::make_exception_ptr(ConsequenceError(Code::kAborted, why)));
}

void StepLife::drop(const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (!is_in_doubt_ || state_ != proto::STEP_PREPARED) return;
    was_dropped_ = true;
  }
  resolve(/*commit=*/false, why);
}

bool StepLife::is_in_doubt() const {
  MutexLock lock(mutex_);
  return is_in_doubt_ && state_ == proto::STEP_PREPARED;
}

bool StepLife::is_over() const {
  MutexLock lock(mutex_);
  return is_over_;
}

proto::StepState StepLife::state() const {
  MutexLock lock(mutex_);
  return state_;
}

bool StepLife::has_written() const {
  MutexLock lock(mutex_);
  return has_written_;
}

bool StepLife::wait_for_writes(Clock& clock, Seconds until) {
  MutexLock lock(mutex_);
  while (!has_written_ && !is_over_ && clock.now() < until) {
    clock.wait_until(changed_, mutex_, until);  // wait: for a step that is inside the gate, or about to enter
  }
  return has_written_ || is_over_;
}

void StepLife::on_abort(std::function<void(std::exception_ptr)> end_waits) {
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    if (state_ != proto::STEP_ABORTED) {
      end_waits_ = std::move(end_waits);
      return;
    }
    error = error_;
  }
  end_waits(error);
}

bool StepLife::set_prepared(std::function<void(const std::string&)> let_in) {
  {
    MutexLock lock(mutex_);
    if (state_ != proto::STEP_RUNNING) return false;
    let_in_ = std::move(let_in);
    state_ = proto::STEP_PREPARED;
  }
  answer(/*over=*/false);
  return true;
}

StepLife::Verdict StepLife::verdict() const {
  if (state_ == proto::STEP_COMMITTED) return Verdict::kCommit;
  return state_ == proto::STEP_ABORTED ? Verdict::kAborted : Verdict::kInDoubt;
}

StepLife::Verdict StepLife::wait_for_verdict(Clock& clock, Seconds until) {
  MutexLock lock(mutex_);
  while (state_ == proto::STEP_PREPARED && !is_in_doubt_ && clock.now() < until) {
    clock.wait_until(changed_, mutex_, until);  // wait: for Commit, Abort, the master's death, the step's deadline
  }
  if (state_ == proto::STEP_PREPARED) is_in_doubt_ = true;
  return verdict();
}

StepLife::Verdict StepLife::wait_for_others(Clock& clock, Seconds until) {
  MutexLock lock(mutex_);
  while (state_ == proto::STEP_PREPARED && clock.now() < until) {
    clock.wait_until(changed_, mutex_, until);  // wait: for the other participants, for a bounded time
  }
  return verdict();
}

bool StepLife::commit_alone() {
  MutexLock lock(mutex_);
  if (state_ == proto::STEP_RUNNING) state_ = proto::STEP_COMMITTED;
  return state_ == proto::STEP_COMMITTED;
}

void StepLife::set_written() {
  {
    MutexLock lock(mutex_);
    has_written_ = true;
    changed_.notify_all();
  }
  answer(/*over=*/false);
}

void StepLife::finish(std::vector<Tensor> results) {
  {
    MutexLock lock(mutex_);
    if (state_ == proto::STEP_COMMITTED) {
      results_ = std::move(results);
      error_ = nullptr;  // what followed the writes was given up too late
    }
  }
  end();
}

// What it throws after an abort follows from that.
void StepLife::fail(std::exception_ptr error) {
  std::function<void(std::exception_ptr)> end_waits;
  {
    MutexLock lock(mutex_);
    if (has_written_ || (call_.joint && state_ == proto::STEP_COMMITTED)) {
      if (error_ == nullptr) error_ = error;
    } else if (state_ != proto::STEP_ABORTED) {
      end_waits = set_aborted(error);
    }
  }
  if (end_waits) end_waits(error);
  end();
}

void StepLife::end() {
  std::function<void(std::exception_ptr)> end_waits;  // destroyed without the lock
  std::function<void(const std::string&)> let_in;
  {
    MutexLock lock(mutex_);
    is_over_ = true;
    end_waits.swap(end_waits_);
    let_in.swap(let_in_);
    changed_.notify_all();
  }
  answer(/*over=*/true);
}

uint64_t StepLife::result_bytes() const {
  MutexLock lock(mutex_);
  return Message{{}, results_}.tensor_bytes();
}

}  // namespace longhaul
