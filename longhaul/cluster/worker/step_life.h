#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/cluster/transport/incoming_call.h"
#include "longhaul/proto/cluster_service.pb.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

class PartPlace;

// What became of a step on a task, as far as it is known.
struct StepOutcome {
  proto::StepState state = proto::STEP_UNKNOWN;
  bool is_over = false;
  std::exception_ptr error;  // of an aborted step; of a committed one: of what follows its writes
  std::vector<Tensor> results;
};

// The part of a step on its task, from the call to its end: what was said about it, by whom, and who waits for what.
// The part itself runs on another thread (part_job.h), which waits here for the verdict.
//
//   running --prepared--> prepared --commit--> committing --written--> committed --+
//      |                     |                                                     +--finish, fail--> over
//      +------- abort -------+------------------------------> aborted -------------+
//
// A part without a joint commit goes from running to committing by itself, and is aborted if its writes fail. If those
// of a joint commit do, the step is committed all the same, as it is elsewhere, with that error. A prepared step is in
// doubt once its master has died, or a participant says so: then the master's Commit waits, until the participants have
// found out (step_doubt.h) whether one of them has committed. What is committing counts as committed: nobody can stop
// it.
//
// Any thread may call. Replies are called once, without a lock, inside the calls that make them possible.
class StepLife {
 public:
  using Reply = std::function<void(const StepOutcome&)>;
  struct Call {
    int64_t step = 0;
    IncomingCall::Caller master;
    std::string session;
    bool joint = false;
    Seconds deadline{0};  // on the transport's clock; 0: none
    std::vector<proto::Participant> participants;
    std::shared_ptr<PartPlace> place{};  // of the part, for whoever looks at it; may be null
  };
  enum class Verdict { kCommit, kAborted, kInDoubt };

  explicit StepLife(Call call) : call_(std::move(call)) {}
  const Call& call() const { return call_; }

  // ---- What others say ----

  // RunPart, and its repetitions: answered when the step is prepared, if the commit is joint, else when it is over.
  void when_run(Reply reply) EXCLUDES(mutex_);
  // The master commits: answered when the step is over. FailedPreconditionError: it is not prepared.
  void commit(Reply reply) EXCLUDES(mutex_);
  // Whoever takes that snapshot knows that another task has committed the step, which goes past the gate that is shut
  // for the snapshot: answered when the writes are made. FailedPreconditionError: as above. AbortedError: the gate is
  // not shut for it.
  void commit_as_others(const std::string& snapshot, Reply reply) EXCLUDES(mutex_);
  // Returns what it is then. The first error is kept; one that is no consequence replaces one that is. Of a committed
  // step, what follows its writes is given up.
  proto::StepState abort(std::exception_ptr error) EXCLUDES(mutex_);
  // The part cannot go on: as abort(), but a prepared step is left to its master.
  void give_up(std::exception_ptr error) EXCLUDES(mutex_);
  // The master has died: the step is aborted, unless it is prepared, then it is in doubt.
  void lose_master(const std::string& why) EXCLUDES(mutex_);
  // `resolve`: as AskRequest has it.
  StepOutcome ask(bool resolve) EXCLUDES(mutex_);
  // What the participants have found out of a step in doubt; otherwise nothing happens.
  void resolve(bool commit, const std::string& why) EXCLUDES(mutex_);
  // They have not found out: it is aborted here, and participants that ask are told that it was prepared.
  void drop(const std::string& why) EXCLUDES(mutex_);

  bool is_in_doubt() const EXCLUDES(mutex_);
  bool is_over() const EXCLUDES(mutex_);
  proto::StepState state() const EXCLUDES(mutex_);
  bool has_written() const EXCLUDES(mutex_);
  // Waits until a committed step has written, or is over. False: it has not at `until`.
  bool wait_for_writes(Clock& clock, Seconds until) EXCLUDES(mutex_);

  // ---- The part's own thread ----

  // Called once with the error when the step is aborted, at once if it is, or when what follows its writes is given up;
  // not after finish(). It must own what it touches.
  void on_abort(std::function<void(std::exception_ptr)> end_waits) EXCLUDES(mutex_);
  // `let_in` lets the part past the gate that is shut for a snapshot. False: it was aborted.
  bool set_prepared(std::function<void(const std::string& snapshot)> let_in) EXCLUDES(mutex_);
  // Waits for the verdict; kInDoubt: the master has died, or is silent at `until`.
  Verdict wait_for_verdict(Clock& clock, Seconds until) EXCLUDES(mutex_);
  // Of a step in doubt: waits for what the others know; kInDoubt: they do not at `until`.
  Verdict wait_for_others(Clock& clock, Seconds until) EXCLUDES(mutex_);
  bool commit_alone() EXCLUDES(mutex_);  // without a joint commit. False: it was aborted
  void set_written() EXCLUDES(mutex_);
  // It is over: with the results, or an error.
  void finish(std::vector<Tensor> results) EXCLUDES(mutex_);
  void fail(std::exception_ptr error) EXCLUDES(mutex_);

  uint64_t result_bytes() const EXCLUDES(mutex_);

 private:
  using Replies = std::vector<Reply>;

  std::exception_ptr not_prepared() const;
  proto::StepState abort_if(bool even_prepared, const std::exception_ptr& error) EXCLUDES(mutex_);
  void keep(const std::exception_ptr& error) REQUIRES(mutex_);
  std::function<void(std::exception_ptr)> set_aborted(const std::exception_ptr& error) REQUIRES(mutex_);
  bool may_answer_run() const REQUIRES(mutex_);
  StepOutcome outcome() const REQUIRES(mutex_);
  Verdict verdict() const REQUIRES(mutex_);
  void answer(bool over) EXCLUDES(mutex_);  // those whose time has come
  void end() EXCLUDES(mutex_);

  const Call call_;
  mutable Mutex mutex_;
  CondVar changed_;
  proto::StepState state_ GUARDED_BY(mutex_) = proto::STEP_RUNNING;
  bool has_written_ GUARDED_BY(mutex_) = false;
  bool is_in_doubt_ GUARDED_BY(mutex_) = false;
  bool was_dropped_ GUARDED_BY(mutex_) = false;
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ GUARDED_BY(mutex_);
  std::vector<Tensor> results_ GUARDED_BY(mutex_);
  std::function<void(std::exception_ptr)> end_waits_ GUARDED_BY(mutex_);
  std::function<void(const std::string&)> let_in_ GUARDED_BY(mutex_);
  Replies run_ GUARDED_BY(mutex_);  // who waits for that
  Replies written_ GUARDED_BY(mutex_);
  Replies over_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
