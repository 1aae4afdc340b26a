#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/events/scalar_watch.h"
#include "longhaul/io/files/file.h"
#include "longhaul/status/status_options.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/status/status_report.h"
#include "longhaul/train/status/step_looks.h"

namespace longhaul {

class RunJournal;
class Saver;

// What hangs, while something does: "no step for 603 s". Empty: nobody watches. Any thread calls it; it must not wait.
using HangTeller = std::function<std::optional<std::string>()>;

struct RunStatusOptions {
  StatusOptions page{};
  std::string directory{};                       // of the checkpoints; empty: none
  std::shared_ptr<SaveAttempts> saves{};         // nullptr: nothing is saved
  std::shared_ptr<SaveAttempts> mirror_saves{};  // nullptr: there is no mirror
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// How a training run stands, updated by those who make it and read by those who watch it. An update takes a lock that
// nobody holds for longer than a copy of some numbers takes. Any thread may call.
//
//   preparing --trains--> training --prepares, ends--> ...
class RunStatus {
 public:
  explicit RunStatus(RunStatusOptions options);

  // From the training:
  void begins(std::shared_ptr<RunJournal> journal);  // null: there is none
  void prepares(const std::string& why);             // "the session was lost, and another one is made"
  void trains();
  void recovered(const std::string& prefix);  // the session trains, restored from it; empty: initialised
  void ends();                                // what follows ends the run
  void look(std::optional<int64_t> step);     // the global step now. Call it every kStepLookSecs
  void ends_at(int64_t last_step);            // for the time that is left, unless the options have said it
  void follow_saves(Saver& saver);
  void follow_scalars(const std::string& directory);  // FileWriter::logdir()
  void watch_hangs(HangTeller hung);

  // What POST /stop stops.
  void stopped_by(const Coordinator& coord);
  // Requests for a checkpoint, which the caller promises to look for as long as it keeps the returned object. Each
  // notifies `coord`.
  [[nodiscard]] std::shared_ptr<const Coordinator> serve_saves(const Coordinator& coord);
  bool has_save_request() const { return save_wanted_; }
  bool take_save_request() { return save_wanted_.load(std::memory_order_relaxed) && save_wanted_.exchange(false); }

  // From the page:
  enum class Asked { kDone, kNobody };
  Asked request_stop();
  Asked request_save();
  StatusReport report() const;  // without what the page itself knows: log, disk, requests
  std::pair<StatusReport::Phase, std::string> phase() const;
  std::optional<std::string> hung() const;  // nullopt too while it does not train: what takes its time then is no hang
  std::map<std::string, std::vector<CurvePoint>> curves() const { return curves_->points(); }
  const RunStatusOptions& options() const { return options_; }

 private:
  struct SeenSaves {
    Mutex mutex;
    std::vector<std::string> kept GUARDED_BY(mutex);
    std::optional<SaveReport> last GUARDED_BY(mutex);
  };

  const RunStatusOptions options_;
  const double began_;
  // What others update while they do something else: threads that outlive a stop share these.
  const std::shared_ptr<Curves> curves_ = std::make_shared<Curves>();
  const std::shared_ptr<SeenSaves> seen_ = std::make_shared<SeenSaves>();
  std::atomic<bool> save_wanted_{false};

  mutable Mutex mutex_;
  StatusReport::Phase phase_ GUARDED_BY(mutex_) = StatusReport::Phase::kPreparing;
  std::string why_ GUARDED_BY(mutex_) = "the session is being prepared";
  std::shared_ptr<RunJournal> journal_ GUARDED_BY(mutex_);
  std::string restored_from_ GUARDED_BY(mutex_);
  StepLooks steps_ GUARDED_BY(mutex_);
  int64_t last_step_ GUARDED_BY(mutex_);
  std::shared_ptr<const void> saved_ GUARDED_BY(mutex_);  // the subscription to a Saver's saves
  std::map<std::string, std::shared_ptr<const ScalarWatch>> scalars_ GUARDED_BY(mutex_);  // by directory
  HangTeller hung_ GUARDED_BY(mutex_);
  std::optional<Coordinator> stops_ GUARDED_BY(mutex_);
  std::weak_ptr<const Coordinator> serves_saves_ GUARDED_BY(mutex_);
};

inline constexpr Seconds kStepLookSecs{1};

}  // namespace longhaul
