#include "longhaul/trainer/step_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

constexpr size_t kMostShown = 4;
constexpr const char* kLoss = "loss";
constexpr int64_t kStepsWithoutLoss = 100;  // after which the log tells of it

void check_scalar(std::string_view name, const at::Tensor& value) {
  if (!value.defined()) {
    throw InvalidArgumentError(fmt::format("Trainer::log(\"{}\", ...): the tensor is undefined", name));
  }
  if (value.numel() == 1) return;
  throw InvalidArgumentError(fmt::format(
      "Trainer::log(\"{}\", ...): the tensor has {} elements, want one, such as its mean()", name, value.numel()));
}

}  // namespace

double StepLog::Entry::value() const {
  return tensor.defined() ? tensor.item<double>() : number;
}

void StepLog::begin_run(FileWriter* writer, int64_t step, bool is_watched) {
  writer_ = writer;
  is_watched_ = is_watched;
  has_warned_of_outside_ = false;
  loss_.reset();
  loss_number_.reset();
  steps_without_loss_ = 0;
  for (Entry& entry : entries_) {
    entry.next_summary = step;
    entry.has_warned = false;
  }
}

StepLog::Entry& StepLog::entry(std::string_view name) {
  const auto found = places_.find(name);
  if (found != places_.end()) return entries_[found->second];
  places_.emplace(name, entries_.size());
  return entries_.emplace_back(Entry{.name = std::string(name)});
}

void StepLog::log(std::string_view name, const at::Tensor& value, int64_t step) {
  check_scalar(name, value);
  Entry& logged = entry(name);
  logged.tensor = value.detach();
  if (name == kLoss) {
    loss_ = value;
    loss_number_.reset();
  }
  take(logged, step);
}

void StepLog::log(std::string_view name, double value, int64_t step) {
  Entry& logged = entry(name);
  logged.tensor.reset();
  logged.number = value;
  if (name == kLoss) loss_number_ = value;
  take(logged, step);
}

// To read a value from a device would wait for the device.
void StepLog::take(Entry& entry, int64_t step) {
  entry.step = step;
  if (!entry.tensor.defined() || entry.tensor.is_cpu()) look_at(entry);
  write_if_due(entry, step);
}

// What is logged more rarely than summaries are due is written each time.
void StepLog::write_if_due(Entry& entry, int64_t step) {
  if (writer_ == nullptr || summary_steps_ == 0 || step < entry.next_summary) return;
  entry.next_summary = summary_steps_ > std::numeric_limits<int64_t>::max() - step ? std::numeric_limits<int64_t>::max()
                                                                                   : step + summary_steps_;
  writer_->add_scalar(entry.name, static_cast<float>(entry.value()), step);
  look_at(entry);
}

std::optional<double> StepLog::loss() const {
  if (loss_number_ || !loss_.defined()) return loss_number_;
  return loss_.item<double>();
}

at::Tensor StepLog::take_loss() {
  loss_number_.reset();
  if (!loss_.defined() && ++steps_without_loss_ == kStepsWithoutLoss) {
    log_info(
        "the loss of {} steps was not logged as a tensor: with trainer.log(\"loss\", loss) it is shown, NaN is named, "
        "and so is a module that is trained but not given to the Trainer",
        kStepsWithoutLoss);
  }
  return std::exchange(loss_, at::Tensor());
}

void StepLog::warn_of_loss_outside(std::string_view name) {
  if (std::exchange(has_warned_of_outside_, true)) return;
  log_warning(
      "Trainer::log(\"{}\", ...) was called before any loop of the Trainer. Steps in another loop are not counted and "
      "not saved: write for (int64_t step : trainer.steps(n)), or trainer.epochs(n) and trainer.batches(*loader)",
      name);
}

std::string StepLog::shown() const {
  std::string text;
  for (size_t i = 0; i < std::min(entries_.size(), kMostShown); ++i) {
    text += fmt::format("{}{} {:.4f}", i > 0 ? "  " : "", entries_[i].name, entries_[i].value());
  }
  return text;
}

void StepLog::look_at_values() {
  for (Entry& entry : entries_) look_at(entry);
}

void StepLog::look_at(Entry& entry) const {
  const bool is_loss = entry.name == kLoss;
  if (entry.has_warned || (is_loss && is_watched_)) return;
  const double value = entry.value();
  if (std::isfinite(value)) return;
  entry.has_warned = true;
  if (is_loss) {
    log_warning(
        "the loss of step {} is {}. Training continues, and the last checkpoint without NaN is kept; docs/guide/"
        "checkpoints.md says how to go back to it",
        entry.step, value);
  } else {
    log_warning(
        "\"{}\" of step {} is {}. Training continues. If the model is damaged, docs/guide/checkpoints.md says how to "
        "go back to a checkpoint before that. Only what is logged as \"loss\" can be watched in each step "
        "(TrainerOptions::divergence): a program with several losses logs their sum under that name as well",
        entry.name, entry.step, value);
  }
}

}  // namespace longhaul
