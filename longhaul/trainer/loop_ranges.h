#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "longhaul/trainer/batch_look.h"
#include "longhaul/trainer/training_loops.h"

namespace longhaul {

// Whether a range is left by a break, and neither at its end nor by an exception.
class LoopExit {
 public:
  void reached_end() { at_end_ = true; }
  bool is_break() const { return !at_end_ && std::uncaught_exceptions() <= exceptions_; }

 private:
  const int exceptions_ = std::uncaught_exceptions();
  bool at_end_ = false;
};

struct LoopEnd {};

// A loader of batches, or a pointer to one, such as make_data_loader() returns.
template <typename T>
concept HasBatches = requires(T& loader) {
  loader.begin();
  loader.end();
};
template <typename T>
concept PointsToBatches = requires(T& pointer) {
  (*pointer).begin();
  (*pointer).end();
};

// Trainer::steps(): for (int64_t step : trainer.steps(n)).
class StepRange {
 public:
  StepRange(TrainingLoops& loops, int64_t last) : loops_(loops), last_(last) {}
  StepRange(const StepRange&) = delete;
  ~StepRange() {
    if (is_entered_) loops_.leave_outer(exit_.is_break());
  }

  class Iterator {
   public:
    explicit Iterator(StepRange& range) : range_(range) {}
    int64_t operator*() const { return range_.loops_.step(); }
    Iterator& operator++() {
      range_.loops_.end_step();
      return *this;
    }
    bool operator!=(LoopEnd) const { return range_.has_step(); }

   private:
    StepRange& range_;
  };
  Iterator begin() {
    loops_.enter_steps(last_);
    is_entered_ = true;
    return Iterator(*this);
  }
  LoopEnd end() const { return {}; }

 private:
  bool has_step() {
    if (loops_.has_step(last_)) return true;
    exit_.reached_end();
    return false;
  }

  TrainingLoops& loops_;
  const int64_t last_;
  LoopExit exit_;
  bool is_entered_ = false;
};

// Trainer::epochs(): for (int64_t epoch : trainer.epochs(n)).
class EpochRange {
 public:
  EpochRange(TrainingLoops& loops, int64_t last) : loops_(loops), last_(last) {}
  EpochRange(const EpochRange&) = delete;
  ~EpochRange() {
    if (is_entered_) loops_.leave_outer(exit_.is_break());
  }

  class Iterator {
   public:
    explicit Iterator(EpochRange& range) : range_(range) {}
    int64_t operator*() const { return range_.loops_.epoch(); }
    Iterator& operator++() {
      range_.loops_.end_epoch();
      range_.begin_epoch();
      return *this;
    }
    bool operator!=(LoopEnd) const { return range_.has_epoch(); }

   private:
    EpochRange& range_;
  };
  Iterator begin() {
    loops_.enter_epochs(last_);
    is_entered_ = true;
    begin_epoch();
    return Iterator(*this);
  }
  LoopEnd end() const { return {}; }

 private:
  bool has_epoch() {
    if (loops_.has_epoch(last_)) return true;
    exit_.reached_end();
    return false;
  }
  void begin_epoch() {
    if (loops_.has_epoch(last_)) loops_.begin_epoch();
  }

  TrainingLoops& loops_;
  const int64_t last_;
  LoopExit exit_;
  bool is_entered_ = false;
};

// Numbers from 0 on, for Trainer::batches(count).
class Count {
 public:
  explicit Count(int64_t last) : last_(last) {}
  class Iterator {
   public:
    explicit Iterator(int64_t at) : at_(at) {}
    int64_t operator*() const { return at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ < other.at_; }

   private:
    int64_t at_;
  };
  Iterator begin() const { return Iterator(0); }
  Iterator end() const { return Iterator(last_); }

 private:
  int64_t last_;
};

// Trainer::batches(): for (auto& batch : trainer.batches(*loader)). `Loader` is a reference, or a value that the range
// keeps.
template <typename Loader>
class BatchRange {
 public:
  BatchRange(TrainingLoops& loops, Loader loader) : loops_(loops), loader_(std::forward<Loader>(loader)) {}
  BatchRange(const BatchRange&) = delete;
  ~BatchRange() {
    if (is_entered_) loops_.leave_batches(exit_.is_break());
  }

  class Iterator {
   public:
    explicit Iterator(BatchRange& range) : range_(range) {}
    decltype(auto) operator*() const { return **range_.at_; }
    Iterator& operator++() {
      range_.loops_.end_batch(range_.look_);
      ++*range_.at_;
      range_.look_for_end();
      return *this;
    }
    bool operator!=(LoopEnd) const { return range_.has_batch(); }

   private:
    BatchRange& range_;
  };

  Iterator begin() {
    const int64_t taken = loops_.enter_batches();
    is_entered_ = true;
    if (taken == TrainingLoops::kNoneLeft) {
      exit_.reached_end();
      return Iterator(*this);
    }
    at_.emplace(loader_.begin());
    end_.emplace(loader_.end());
    skip(taken);
    look_for_end();
    return Iterator(*this);
  }
  LoopEnd end() const { return {}; }

 private:
  using Loaded = std::remove_reference_t<Loader>;

  bool has_batch() {
    while (at_ && *at_ != *end_ && loops_.leaves_out()) {
      loops_.leave_out_batch(look_);
      ++*at_;
      look_for_end();
    }
    if (at_ && *at_ != *end_ && loops_.goes_on()) return true;
    exit_.reached_end();
    return false;
  }
  // A loader that draws random numbers for each batch does not make the same ones again; only what is not taken yet
  // must be the same. So the last of those to skip stays the current one until the numbers are those behind it.
  void skip(int64_t taken) {
    if (taken == 0) return loops_.skipped(0, 0);
    const GeneratorUse drawn;
    int64_t found = 0;
    while (*at_ != *end_) {
      loops_.check_stop();
      if (++found == taken) break;
      ++*at_;
    }
    const uint64_t look = found == taken ? look_at_batch(**at_) : 0;
    loops_.skipped(found, drawn.changed() ? 0 : look);
    if (found == taken) ++*at_;
  }
  void look_for_end() {
    if (*at_ != *end_) {
      look_ = look_at_batch(**at_);
    } else {
      loops_.note_last_batch();
    }
  }

  TrainingLoops& loops_;
  Loader loader_;
  std::optional<decltype(std::declval<Loaded&>().begin())> at_;  // empty: no batch is left
  std::optional<decltype(std::declval<Loaded&>().end())> end_;
  uint64_t look_ = 0;  // at the current batch
  LoopExit exit_;
  bool is_entered_ = false;
};

}  // namespace longhaul
