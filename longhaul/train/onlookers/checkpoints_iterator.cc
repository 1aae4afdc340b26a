#include "longhaul/train/onlookers/checkpoints_iterator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/reader_notes.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/train/journal/last_run_event.h"
#include "longhaul/train/onlookers/chief_watch.h"
#include "longhaul/train/onlookers/directory_news.h"

namespace longhaul {
namespace {

constexpr Seconds kLookAnyway{10};

CheckpointsIteratorOptions checked(CheckpointsIteratorOptions options) {
  const auto check = [](const char* name, Seconds value, double most) {
    if (value.count() >= 0 && value.count() <= most) return;
    throw InvalidArgumentError(
        fmt::format("checkpoints_iterator: {} is {} s: want 0 to {}", name, value.count(), most));
  };
  constexpr double kLongest = 1e9, kDay = 24 * 3600;
  check("min_interval_secs", options.min_interval_secs, kLongest);
  check("timeout", options.timeout.value_or(Seconds{0}), kLongest);
  check("chief_timeout", options.chief_timeout, kLongest);
  check("pin_secs", options.pin_secs, kDay);
  return options;
}

}  // namespace

class CheckpointsIterator::Follower {
 public:
  Follower(std::string directory, CheckpointsIteratorOptions options)
      : directory_(strip_file_scheme(directory)),
        options_(checked(std::move(options))),
        clock_(options_.coord.clock()) {}

  const NewCheckpoint* next() {
    pin_.reset();
    if (end_ != IterationEnd::kNotYet) return nullptr;
    if (handed_out_at_) {
      // wait: the interval that the program has asked for
      options_.coord.wait_for_stop_until(*handed_out_at_ + options_.min_interval_secs);
    }
    log_info("Waiting for new checkpoint at {}", directory_);
    alive_at_ = clock_.now();
    std::optional<Seconds> deadline = deadline_from_now();
    while (!options_.coord.should_stop()) {
      news_.forget(*options_.files);
      const bool is_over = training_is_over();  // before the look, so that its last checkpoint is found
      if (take_newest()) return &current_;
      if (is_over) return end(IterationEnd::kTrainingEnded);
      if (clock_.now() - alive_at_ >= options_.chief_timeout) return end(IterationEnd::kNoChief);
      if (deadline && clock_.now() >= *deadline) {
        if (!options_.timeout_fn || options_.timeout_fn()) return end(IterationEnd::kTimeout);
        deadline = deadline_from_now();
      }
      wait(deadline);
    }
    return end(IterationEnd::kStopped);
  }

  IterationEnd ended_by() const { return end_; }

 private:
  struct Found {
    std::string prefix{};
    double committed_at = 0;
    bool operator==(const Found&) const = default;
  };

  std::optional<Seconds> deadline_from_now() const {
    return options_.timeout ? std::optional(clock_.now() + *options_.timeout) : std::nullopt;
  }

  bool training_is_over() {
    const Seconds now = clock_.now();
    if (chief_.is_there(*options_.files, directory_, now)) {
      alive_at_ = now;
      told_of_no_chief_ = false;
      return false;
    }
    const std::optional<RunEvent> last = last_run_event(*options_.files, directory_);
    if (last && is_final_end(*last)) return true;
    if (!std::exchange(told_of_no_chief_, true)) tell_of_no_chief();
    return false;
  }
  void tell_of_no_chief() const {
    log_warning("{}: waiting for {}, for at most {:.0f} s", directory_,
                !is_directory(*options_.files, directory_) ? "the directory, which does not exist"
                : chief_.last().empty()                    ? "a training, as nothing trains there"
                                        : "the restart of the training, whose chief is gone: " + chief_.last(),
                options_.chief_timeout.count());
  }

  // A checkpoint that is newer than, or at least another than, the last one.
  bool take_newest() {
    const std::optional<Found> newest = find_newest();
    if (!newest || newest == last_ || newest == skipped_) return false;
    try {
      pin(newest->prefix);
    } catch (const NotFoundError& error) {
      log_info("{}; going on to the next", error.what());
      skipped_ = newest;
      news_.add();  // there is a newer one
      return false;
    }
    log_info("Found new checkpoint at {}", newest->prefix);
    last_ = newest;
    handed_out_at_ = clock_.now();
    current_ = {.prefix = newest->prefix, .step = split_step(newest->prefix).step, .is_pinned = pin_ != nullptr};
    return true;
  }
  std::optional<Found> find_newest() {
    try {
      const std::optional<std::string> prefix = latest_checkpoint(*options_.files, directory_);
      if (!prefix) return std::nullopt;
      const std::vector<double> times = checkpoint_mtimes(*options_.files, {*prefix});
      told_of_error_ = false;
      return times.empty() ? std::nullopt : std::optional(Found{*prefix, times.front()});
    } catch (const Error& error) {
      if (!std::exchange(told_of_error_, true)) log_warning("{} cannot be searched: {}", directory_, error.what());
      return std::nullopt;
    }
  }
  void pin(const std::string& prefix) {
    if (options_.pin_secs == Seconds{0}) return;
    try {
      pin_ = std::make_unique<CheckpointPin>(
          prefix, CheckpointPinOptions{.lasts = options_.pin_secs, .files = options_.files, .clock = &clock_});
    } catch (const NotFoundError&) {
      throw;
    } catch (const Error& error) {
      log_warning("{} cannot be pinned, and may be deleted while it is read: {}", prefix, error.what());
    }
  }

  void wait(const std::optional<Seconds>& deadline) {
    Seconds until = std::min(clock_.now() + kLookAnyway, alive_at_ + options_.chief_timeout);
    if (deadline) until = std::min(until, *deadline);
    news_.wait(until);
  }

  const NewCheckpoint* end(IterationEnd end) {
    end_ = end;
    switch (end) {
      case IterationEnd::kTrainingEnded:
        log_info("the training in {} has ended, and so does the wait for its checkpoints", directory_);
        break;
      case IterationEnd::kTimeout: log_info("Timed-out waiting for a checkpoint."); break;
      case IterationEnd::kNoChief:
        log_warning("{}: there was no chief for {:.0f} s: no further checkpoint is waited for", directory_,
                    options_.chief_timeout.count());
        break;
      default: log_info("the wait for checkpoints in {} was stopped", directory_);
    }
    return nullptr;
  }

  const std::string directory_;
  const CheckpointsIteratorOptions options_;
  Clock& clock_;
  ChiefWatch chief_;
  std::optional<Found> last_, skipped_;
  NewCheckpoint current_;
  std::unique_ptr<CheckpointPin> pin_;
  std::optional<Seconds> handed_out_at_;
  Seconds alive_at_{0};  // when there was a chief, or the wait began
  IterationEnd end_ = IterationEnd::kNotYet;
  bool told_of_no_chief_ = false, told_of_error_ = false;
  DirectoryNews news_{directory_, options_.coord};
};

CheckpointsIterator::CheckpointsIterator(std::string directory, CheckpointsIteratorOptions options)
    : follower_(std::make_unique<Follower>(std::move(directory), std::move(options))) {}
CheckpointsIterator::~CheckpointsIterator() = default;
CheckpointsIterator::CheckpointsIterator(CheckpointsIterator&&) noexcept = default;

const NewCheckpoint* CheckpointsIterator::next() {
  return follower_->next();
}

IterationEnd CheckpointsIterator::ended_by() const {
  return follower_->ended_by();
}

CheckpointsIterator checkpoints_iterator(const std::string& directory, CheckpointsIteratorOptions options) {
  return CheckpointsIterator(directory, std::move(options));
}

}  // namespace longhaul
