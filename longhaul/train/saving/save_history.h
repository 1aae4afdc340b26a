#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

class Deadline;

// A save that wrote something.
struct SaveReport {
  std::string prefix;
  std::optional<int64_t> step;
  uint64_t bytes = 0;   // of its data files
  Seconds snapshot{0};  // until the variables were read; training stalled no longer than this
  Seconds total{0};     // until everything was done, including deletions
};

using SavedCallback = std::function<void(const std::string& prefix)>;

// A Saver's record of its saves, and the callbacks that it notifies of them. Any thread may call.
class SaveHistory {
 public:
  explicit SaveHistory(Clock& clock) : clock_(clock) {}

  // Marks a save as under way, from its call until its return.
  class UnderWay {
   public:
    explicit UnderWay(SaveHistory& saves);
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    SaveHistory& saves_;
  };
  // Returns whether no save is under way.
  bool wait_until_idle(Seconds timeout, const Deadline* deadline = nullptr) const;

  // `committed_at`: the time of the checkpoint's index file.
  void note_restored(const std::string& prefix, double committed_at);
  void note_saved(SaveReport report, bool is_listed, double committed_at);  // call it when the save is complete
  void forget();                                                            // the variables get other values
  void tell(const std::string& prefix) const;                               // calls the callbacks of on_saved()
  std::shared_ptr<const SavedCallback> on_saved(SavedCallback callback);

  std::string last() const;  // the prefix saved or restored last; empty: forgotten
  bool last_is_listed() const;
  bool is_as_restored() const;  // whether nothing was saved since the restore
  std::optional<SaveReport> last_report() const;

  double committed_at() const;  // of last()

  // Whether to warn that another checkpoint of the same step replaces a step's checkpoint. True only if no checkpoint
  // of another step was restored or saved since forget(), and has_warned() was not called.
  bool is_first_step(int64_t step) const;
  void has_warned();
  bool is_first_replacement();  // true on the first call; some file systems change a file's time later

 private:
  Clock& clock_;
  void note_step(std::optional<int64_t> step) REQUIRES(mutex_);

  mutable Mutex mutex_;
  mutable CondVar idle_;
  std::string last_ GUARDED_BY(mutex_);
  bool last_is_listed_ GUARDED_BY(mutex_) = false;
  double committed_at_ GUARDED_BY(mutex_) = 0;
  bool is_as_restored_ GUARDED_BY(mutex_) = false;
  std::optional<int64_t> first_step_ GUARDED_BY(mutex_);  // since forget()
  bool step_has_moved_ GUARDED_BY(mutex_) = false;        // since forget()
  bool has_warned_ GUARDED_BY(mutex_) = false;
  bool was_replaced_ GUARDED_BY(mutex_) = false;
  std::optional<SaveReport> last_report_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<const SavedCallback>> callbacks_ GUARDED_BY(mutex_);
  int under_way_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
