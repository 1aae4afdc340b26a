#include "longhaul/train/hangs/hang_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/job_threads.h"
#include "longhaul/base/log.h"
#include "longhaul/train/hangs/hang_meter.h"

namespace longhaul {
namespace {

constexpr Seconds kRecordTimeout{20};  // for the reports and the journal, before the process ends
constexpr size_t kMostQueued = 2;      // reports behind one that hangs; there is always a place for the last of all
constexpr Seconds kReportTimeout{5};   // for a report under way, at the end of the watch

// No destructor is run, since what hangs may be waited for there.
void end_this_process(bool take_core) {
  if (take_core) {
    std::signal(SIGABRT, SIG_DFL);  // whatever handles it might wait
    std::abort();
  }
  _exit(kHungStatus);
}

}  // namespace

struct HangWatch::State {
  State(const HangOptions& with, Clock& with_clock, WatchedTraining with_training)
      : options(with),
        clock(with_clock),
        training(std::move(with_training)),
        meter(with),
        reports(Clock::real(), {.thread = "lh-hang-report", .owner = "the watch for hangs", .jobs = "reports"},
                {.most = 1, .most_queued = kMostQueued + 1, .most_idle = 0}) {
    meter.begin(clock.now(), training.steps());
  }

  void watch() EXCLUDES(mutex) {
    while (wait_for_next_look()) {
      switch (meter.look(clock.now(), training.steps(), NoStepsExpected::state())) {
        case HangMeter::Finding::kNothing: break;
        case HangMeter::Finding::kHang: report(/*is_new=*/true); break;
        case HangMeter::Finding::kStillHangs: report(/*is_new=*/false); break;
        case HangMeter::Finding::kOver:
          tell(std::nullopt);
          ended_hang = meter.lasted();
          break;
        case HangMeter::Finding::kTooLong: return end();
      }
      report_end();
    }
  }

  // False: the watch ends.
  bool wait_for_next_look() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    const Seconds next = clock.now() + meter.between_looks();
    while (!is_ending && clock.now() < next) {
      clock.wait_until(changed, mutex, next);  // wait: polls: each step would have to notify
    }
    return !is_ending;
  }

  SeenHang seen(bool is_new) const {
    return {.without_step = meter.without_step(),
            .limit = meter.limit(),
            .median_step = meter.median_step(),
            .is_new = is_new};
  }

  void tell(std::optional<std::string> what) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    hung = std::move(what);
  }

  void report(bool is_new) EXCLUDES(mutex) {
    tell(fmt::format("no step for {:.0f} s", meter.without_step().count()));
    start_if_room([hang = seen(is_new), records = training.records] { report_hang(hang, records); });
  }

  // As soon as there is room behind the reports that are still under way: whoever reads of a hang reads of its end.
  void report_end() {
    if (!ended_hang || reports.busy() > kMostQueued) return;
    start([lasted = *std::exchange(ended_hang, std::nullopt)] { report_end_of_hang(lasted); });
  }

  void start_if_room(JobThreads::Job job) {
    if (reports.busy() <= kMostQueued) start(std::move(job));
  }

  // False: there is no thread for it.
  bool start(JobThreads::Job job) {
    try {
      reports.start(std::move(job));
      return true;
    } catch (const Error& error) {
      log_error("the training hangs, and there is no thread for a report: {}", error.what());
      return false;
    }
  }

  void end() EXCLUDES(mutex) {
    const std::string how = options.take_core ? "by SIGABRT, for a core" : fmt::format("with status {}", kHungStatus);
    auto recorded = std::make_shared<Recorded>();
    const bool is_started = start([recorded, how, hang = seen(/*is_new=*/false), records = training.records] {
      const std::shared_ptr<void> at_end(nullptr, [recorded](void*) {
        MutexLock lock(recorded->mutex);
        recorded->is_done = true;
        recorded->changed.notify_all();
      });
      record_end_by_hang(hang, records, how);
    });
    if (is_started) recorded->wait();
    training.end_process(options.take_core);
  }

  struct Recorded {
    void wait() EXCLUDES(mutex) {
      const Seconds end = Clock::real().now() + kRecordTimeout;
      MutexLock lock(mutex);
      while (!is_done && Clock::real().now() < end) {
        changed.wait_for(mutex, end - Clock::real().now());  // wait: for the journal, whose disk may hang
      }
    }

    Mutex mutex;
    CondVar changed;
    bool is_done GUARDED_BY(mutex) = false;
  };

  const HangOptions options;
  Clock& clock;
  const WatchedTraining training;
  HangMeter meter;
  std::optional<Seconds> ended_hang;  // how long it lasted, if that is not reported yet
  Mutex mutex;
  CondVar changed;
  bool is_ending GUARDED_BY(mutex) = false;
  std::optional<std::string> hung GUARDED_BY(mutex);
  JobThreads reports;
};

namespace {

HangOptions checked(const HangOptions& options) {
  check_hang(options, "HangOptions");
  return options;
}

WatchedTraining with_end(WatchedTraining training) {
  if (!training.end_process) training.end_process = end_this_process;
  return training;
}

}  // namespace

HangWatch::HangWatch(const HangOptions& options, Clock& clock, WatchedTraining training)
    : state_(std::make_shared<State>(checked(options), clock, with_end(std::move(training)))) {
  if (options.after <= Seconds{0}) return;
  try {
    thread_ = NamedThread("lh-hang", [state = state_] { state->watch(); });
  } catch (const std::system_error& error) {
    log_warning("nothing watches whether the training hangs, since there is no thread for it: {}", error.what());
  }
}

std::function<std::optional<std::string>()> HangWatch::teller() const {
  return [state = state_] {
    MutexLock lock(state->mutex);
    return state->hung;
  };
}

HangWatch::~HangWatch() {
  {
    MutexLock lock(state_->mutex);
    state_->is_ending = true;
    state_->hung.reset();
    state_->changed.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  state_->reports.request_stop("the training ends");
  state_->reports.stop(kReportTimeout);
}

}  // namespace longhaul
