#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// A save that wrote something.
struct SaveReport {
  std::string prefix;
  std::optional<int64_t> step;
  uint64_t bytes = 0;   // of its data files
  Seconds snapshot{0};  // until the variables were read: training may have waited so long, not longer
  Seconds total{0};     // until all was done, the deletion of old checkpoints too
};

using SavedCallback = std::function<void(const std::string& prefix)>;

// What a Saver remembers of its saves, and whom it tells of them. Any thread.
class SaveHistory {
 public:
  explicit SaveHistory(Clock& clock) : clock_(clock) {}

  // A save, from its call until its return.
  class UnderWay {
   public:
    explicit UnderWay(SaveHistory& saves);
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    SaveHistory& saves_;
  };
  bool wait_until_idle(Seconds timeout) const;  // whether none is under way

  // `committed_at`: the time of its index.
  void note_restored(const std::string& prefix, double committed_at);
  void note_saved(SaveReport report, bool is_listed, double committed_at);  // all is done
  void forget();                                                            // the variables hold something else now
  void tell(const std::string& prefix) const;                               // whom on_saved() knows
  std::shared_ptr<const SavedCallback> on_saved(SavedCallback callback);

  std::string last() const;  // the prefix that was saved or restored last; empty: forgotten
  bool last_is_listed() const;
  bool is_as_restored() const;  // nothing was saved since it was restored
  std::optional<SaveReport> last_report() const;

  double committed_at() const;  // of the last

  // Whether to say that a step's checkpoint is replaced by another of the same step: only if since the first that was
  // restored or saved after forget(), none of another step was, and until has_warned() is told.
  bool is_first_step(int64_t step) const;
  void has_warned();
  bool is_first_replacement();  // that is asked for: some file systems change the time of a file later

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
  bool step_has_moved_ GUARDED_BY(mutex_) = false;        // since then
  bool has_warned_ GUARDED_BY(mutex_) = false;
  bool was_replaced_ GUARDED_BY(mutex_) = false;
  std::optional<SaveReport> last_report_ GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<const SavedCallback>> callbacks_ GUARDED_BY(mutex_);
  int under_way_ GUARDED_BY(mutex_) = 0;
};

}  // namespace longhaul
