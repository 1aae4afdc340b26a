#include "longhaul/cluster/worker/part_job.h"

#include <optional>

#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/cluster/worker/part_place.h"
#include "longhaul/cluster/worker/step_doubt.h"
#include "longhaul/runtime/plan/prepared.h"
#include "longhaul/session/step_trace.h"

namespace longhaul {
namespace {

// Ends the waits of a part; kept by whoever may end them.
struct PartWaits {
  PartWaits(std::shared_ptr<SessionState> of, std::shared_ptr<StepExchange> with)
      : session(std::move(of)), exchange(std::move(with)) {}

  void end(int64_t step, const std::exception_ptr& error) {
    exchange->abort(step, error);
    cancellation.cancel(message_of(error));
  }

  const std::shared_ptr<SessionState> session;
  const std::shared_ptr<StepExchange> exchange;
  Cancellation cancellation{&session->cancellation()};
};

class RunningPart {
 public:
  RunningPart(const PartJob& job, std::shared_ptr<PartWaits> waits)
      : job_(job),
        waits_(std::move(waits)),
        sender_(job.worker->transport, call().step, {call().deadline, &waits_->cancellation}, sender_options()),
        messages_(job.part->bundles, exchanged(), *job.worker->exchange, sender_) {}

  // False: it was aborted. Throws what the part throws.
  bool run(std::vector<Tensor>* results) {
    std::vector<const Tensor*> feeds;
    for (const Tensor& feed : job_.feeds) feeds.push_back(&feed);
    const auto kept =
        std::make_shared<Prepared>(Plan::prepare(job_.part->plan, feeds,
                                                 {.deadline = plan_deadline(call().deadline, job_.worker->clock()),
                                                  .cancellation = &waits_->cancellation,
                                                  .exchange = &messages_,
                                                  .trace = job_.is_traced ? &trace_ : nullptr,
                                                  .place = &place().run(),
                                                  .is_step = job_.part->run_writes,
                                                  .door = job_.snapshot}));
    if (!is_to_be_committed(kept)) {
      kept->abort();
      return false;
    }
    write(*kept);
    kept->finish(results);
    results->resize(job_.part->fetches.size());  // without the targets
    place().wait(proto::PLACE_SENDS);
    sender_.finish();
    if (job_.is_traced) results->push_back(Tensor::scalar(part_trace(trace_, job_.worker->transport.task())));
    return true;
  }

 private:
  StepLife& life() const { return *job_.life; }
  const StepLife::Call& call() const { return job_.life->call(); }
  PartPlace& place() const { return *job_.life->call().place; }

  StepSender::Options sender_options() const {
    StepSender::Options options;
    options.failed = [life = job_.life](const std::exception_ptr& error) { life->give_up(error); };
    return options;
  }

  PartMessages::Step exchanged() const {
    PartMessages::Step step{.step = call().step, .deadline = call().deadline};
    for (const proto::Participant& peer : call().participants) step.incarnations[peer.task()] = peer.incarnation();
    return step;
  }

  // What it has sent has arrived by then: once it is prepared, or has written, no other part fails for lack of it. The
  // life keeps the prepared part, because whoever lets it past the gate may be late.
  bool is_to_be_committed(const std::shared_ptr<Prepared>& prepared) {
    place().wait(proto::PLACE_SENDS);
    sender_.finish();
    if (!call().joint) return life().commit_alone();
    job_.worker->exchange->answer_all(call().step);
    if (!life().set_prepared([prepared](const std::string& door) { prepared->let_in(door); })) return false;
    wait_for_verdict(*prepared);
    return life().state() == proto::STEP_COMMITTED;
  }

  void wait_for_verdict(Prepared& prepared) {
    place().wait(proto::PLACE_VERDICT);
    const WorkerOptions& options = job_.worker->options;
    Clock& clock = job_.worker->clock();
    constexpr Seconds kHour{3600};
    const Seconds silent = call().deadline.count() != 0 ? call().deadline + options.undecided : clock.now() + kHour;
    auto verdict = life().wait_for_verdict(clock, silent);
    if (verdict == StepLife::Verdict::kInDoubt) {
      const Seconds until = clock.now() + options.doubt;
      ask_participants(job_.life, job_.worker->transport, until);
      verdict = life().wait_for_others(clock, until);
    }
    if (verdict == StepLife::Verdict::kInDoubt) give_up(prepared);
  }

  // Whether the others have committed is not known: so nothing of this state is saved.
  void give_up(Prepared& prepared) {
    const std::string why = fmt::format(
        "the master of step {} on task {} has died between the commits of the step, and another participant has not "
        "answered for {:.3g} s: the step is dropped on task {}, whose variables may be a step behind the others; "
        "restore a checkpoint, or assign them again",
        call().step, call().master.task, job_.worker->options.doubt.count(), job_.worker->transport.task());
    life().drop(why);
    if (life().state() == proto::STEP_COMMITTED) return;
    log_error("{}", why);
    prepared.mark_inconsistent(why);
  }

  void write(Prepared& prepared) {
    place().wait(proto::PLACE_GATE);
    try {
      prepared.write();
    } catch (const std::exception&) {
      if (!call().joint) throw;
      const std::string why = fmt::format("step {} was committed on other tasks, but not on task {}: {}", call().step,
                                          job_.worker->transport.task(), message_of(std::current_exception()));
      log_error("{}", why);
      prepared.mark_inconsistent(why);
      throw;
    }
    life().set_written();
  }

  const PartJob& job_;
  const std::shared_ptr<PartWaits> waits_;
  StepSender sender_;
  PartMessages messages_;
  StepTrace trace_;
};

void run_to_end(const PartJob& job) {
  const int64_t step = job.life->call().step;
  const auto waits = std::make_shared<PartWaits>(job.session->state(), job.worker->exchange);
  std::vector<Tensor> results;
  try {
    if (!job.worker->exchange->begin(step)) {
      throw AbortedError(fmt::format("step {} is over on task {}", step, job.worker->transport.task()));
    }
    job.life->on_abort([waits, step](const std::exception_ptr& error) { waits->end(step, error); });
    RunningPart(job, waits).run(&results);
    job.life->finish(std::move(results));
  } catch (...) {
    job.life->fail(std::current_exception());
  }
}

}  // namespace

Seconds plan_deadline(Seconds deadline, const Clock& clock) {
  if (deadline.count() == 0) return deadline;
  return Clock::real().now() + (deadline - clock.now());
}

// A snapshot's run opens the gate, also if it fails before it reads.
void run_part(const PartJob& job) {
  run_to_end(job);
  if (!job.snapshot.empty()) {
    job.session->end_snapshot(job.snapshot);
    job.worker->resources->gate().open(job.snapshot);
  }
  job.worker->exchange->end(job.life->call().step);
  job.worker->steps.keep(job.life);
}

}  // namespace longhaul
