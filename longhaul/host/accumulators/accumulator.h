#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/host/accumulators/gradient_sum.h"
#include "longhaul/host/resource.h"

namespace longhaul {

// How a take waits for gradients that do not come.
struct TakeWait {
  int32_t min_required = 0;       // fewer will do, once these have waited for `wait_secs`; 0: never
  Seconds wait_secs{0};           // 0: waits for all
  Seconds warn_secs{0};           // after that long, and then after pauses that double, a warning; 0: none
  Clock* clock = &Clock::real();  // of these times
};

// Collects the gradients of one variable from several workers until there are enough for a step: TensorFlow's
// conditional accumulator. It counts steps, from 0: each take() begins the next one. A gradient says for which step it
// was computed, and one that comes too late for its step is dropped.
//
// If the model was set back (a chief restored a checkpoint), so is the step. Gradients of the steps that are undone
// then count for nothing: neither those that wait to be taken, nor those that still come. TensorFlow takes them for
// gradients of the restored model.
//
// Any thread may call any method. Waiting takes are served in order of arrival. All waits end with `limits`, as those
// of a Queue, and with cancel_takes().
class Accumulator final : public Resource {
 public:
  Accumulator(std::string name, GradientSpec spec, std::unique_ptr<GradientSum> sum);
  ~Accumulator() override = default;

  const std::string& name() const { return name_; }
  // InvalidArgumentError: the handle declares gradients of another dtype or shape, or another reduction.
  void check_handle(const Operation& handle) const override;

  struct Applied {
    bool counted = false;  // false: dropped
    int64_t step = 0;      // the accumulator's
  };
  // Adds a gradient that was computed in step `local_step`, or drops it. Never waits. InvalidArgumentError: the
  // gradient is not of the accumulator's dtype and shape. AbortedError: its container was reset. `worker`, if any, is
  // named in the warnings of a take that waits for others; the clock is that of such takes.
  Applied apply(int64_t local_step, std::span<const Tensor> gradient, const std::string& worker = "",
                const Clock& clock = Clock::real()) EXCLUDES(mutex_);

  // Waits until there are at least that many gradients, and returns the tensors of their mean or sum: of all that there
  // are. With TakeWait::min_required, fewer will do in the end, and a warning says so. InvalidArgumentError:
  // num_required is not positive. CancelledError "TakeGrad operation was cancelled". AbortedError: its container was
  // reset.
  std::vector<Tensor> take(int32_t num_required, const WaitLimits& limits = {}, const TakeWait& wait = {})
      EXCLUDES(mutex_);

  // The step to which gradients belong from now on. Also allows takes again, if they were cancelled.
  void set_global_step(int64_t step) EXCLUDES(mutex_);
  // Ends waiting takes, and later ones too, until set_global_step() is called: for a chief that stops.
  void cancel_takes() EXCLUDES(mutex_);

  void drop(const std::string& why) override EXCLUDES(mutex_);

  int64_t step() const EXCLUDES(mutex_);
  int32_t num_accumulated() const EXCLUDES(mutex_);  // since the last take
  int64_t num_dropped() const EXCLUDES(mutex_);      // since it was created
  int64_t num_reduced() const EXCLUDES(mutex_);      // takes that went on with fewer than they required
  size_t waiting() const EXCLUDES(mutex_);           // takes

 private:
  enum class End { kReady, kCancelled, kTakesCancelled, kDropped, kLate, kOverdue };
  // A waiting take, on its thread's stack. Guarded by the accumulator's mutex.
  struct Taker {
    int32_t num_required = 0;
    TakeWait wait;
    Seconds began{0}, warn_at{0};
    CondVar changed;
    std::optional<End> end{};  // from outside: the work that it belongs to was cancelled, or the take itself
    std::vector<Tensor> taken{};
    int32_t came = 0;  // for the log, with those of whom it is known
    int64_t step = 0;
    std::set<std::string> workers{};
  };
  class Place;  // of a taker in the line

  End wait_and_take(Taker& taker, Seconds deadline) EXCLUDES(mutex_);
  End await(Taker& taker, Seconds deadline) EXCLUDES(mutex_);
  std::optional<Seconds> fewer_will_do_at(const TakeWait& wait) const REQUIRES(mutex_);
  void give_all(Taker& taker) REQUIRES(mutex_);
  void describe(Taker& taker) const REQUIRES(mutex_);
  int32_t count() const REQUIRES(mutex_) { return static_cast<int32_t>(came_at_.size()); }
  bool is_of_another_step(int64_t local_step) const REQUIRES(mutex_);
  void wake_first() REQUIRES(mutex_);
  void check_not_dropped() const REQUIRES(mutex_);
  void end_takes(End end) REQUIRES(mutex_);
  [[noreturn]] void end_wait(End end, const WaitLimits& limits) const EXCLUDES(mutex_);

  const std::string name_;
  const GradientSpec spec_;
  mutable Mutex mutex_;
  const std::unique_ptr<GradientSum> sum_;           // guarded by mutex_
  std::vector<Seconds> came_at_ GUARDED_BY(mutex_);  // the gradients that wait
  int64_t step_ GUARDED_BY(mutex_) = 0;
  int64_t last_undone_ GUARDED_BY(mutex_) = 0;  // the highest step from which it was set back
  int64_t dropped_ GUARDED_BY(mutex_) = 0;
  int64_t reduced_ GUARDED_BY(mutex_) = 0;
  std::set<std::string> workers_ GUARDED_BY(mutex_);  // of the gradients that wait, where known
  bool takes_cancelled_ GUARDED_BY(mutex_) = false;
  std::string why_dropped_ GUARDED_BY(mutex_);    // empty: it was not
  std::deque<Taker*> takers_ GUARDED_BY(mutex_);  // in order of arrival
};

// The form of a handle's gradients (`ConditionalAccumulator`, `SparseConditionalAccumulator`).
GradientSpec gradient_spec(const Operation& handle);

}  // namespace longhaul
