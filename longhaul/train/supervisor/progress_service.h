#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/session/step_fetch.h"
#include "longhaul/train/coordination/looper_thread.h"
#include "longhaul/train/reporting/progress.h"
#include "longhaul/train/supervisor/supervisor_services.h"

namespace longhaul {

// Shows the progress of a training (ServiceOptions::progress) on a thread of its own, lh-progress: a terminal that does
// not move holds no step up. The values are those that the next training step computes along with its own work. If no
// step can compute them, a warning says so and they are left out.
class ProgressService : public LooperThread {
 public:
  // Of the context it needs the coordinator, the session and the global step; `saves` may be null. The graph has the
  // values. `last_step` 0: not known.
  ProgressService(const ServiceContext& context, ProgressOptions options, int64_t last_step);

 protected:
  void start_loop() override;
  void run_loop() override;
  void stop_loop() override;
  Seconds next_interval() override { return progress_->interval(); }

 private:
  // The values of the newest step that was asked for them.
  struct Values {
    Mutex mutex;
    std::vector<Tensor> newest GUARDED_BY(mutex);  // empty: none yet
    bool are_due GUARDED_BY(mutex) = false;
  };
  void ask_for_values();
  bool has_values() const;  // of all steps that were asked
  std::optional<int64_t> step_now() const;
  void show(int64_t step);
  void show_if_new();
  void forget_values();
  int64_t steps_made(int64_t step) const;  // by this session, if it knows; others may make steps, too
  void give_up_on_values(int64_t made);    // that no step computes

  const std::shared_ptr<Session> session_;
  const Output global_step_;
  const std::shared_ptr<const SaveAttempts> saves_;  // may be null
  const ProgressOptions options_;
  const int64_t last_step_;  // 0: not known
  const std::vector<Output> fetches_;
  StepFetching* along_;  // null: there are no values
  const std::shared_ptr<Values> values_ = std::make_shared<Values>();
  std::optional<Progress> progress_;
  Seconds last_line_{0};
  std::optional<int64_t> asked_at_;    // the number of own steps since which the values are asked for in vain
  std::optional<int64_t> shown_step_;  // nullopt: there was no line
};

}  // namespace longhaul
