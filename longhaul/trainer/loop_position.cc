#include "longhaul/trainer/loop_position.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cmath>

#include "longhaul/base/error.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace {

// Doubles: they have every count up to 2^53, and the metric. longhaul/resume_check/run_directory.cc reads them, too.
constexpr int64_t kNumbers = 12;
constexpr size_t kMetric = 8, kBestStep = 9;  // all others are counts from 0 on

void check_numbers(const Tensor& numbers) {
  if (numbers.num_elements() == 0) return;  // a checkpoint without a position
  if (numbers.num_elements() != kNumbers) {
    throw InvalidArgumentError(fmt::format("trainer/position has {} numbers, want {}: another version saved it",
                                           numbers.num_elements(), kNumbers));
  }
  const auto at = numbers.flat<double>();
  for (size_t i = 0; i < at.size(); ++i) {
    const double least = i == kBestStep ? -1 : 0;
    if (i == kMetric || (at[i] >= least && at[i] <= 0x1p53 && at[i] == std::floor(at[i]))) continue;
    throw InvalidArgumentError(fmt::format("trainer/position is damaged: number {} is {}, want a count", i, at[i]));
  }
}

}  // namespace

void LoopPosition::add_to(const Scope& scope) {
  const Scope inner = scope.within("trainer");
  ops::optional_program_value(inner, "position",
                              {.dtype = kDouble,
                               .shape = Shape::unknown_rank(),
                               .expected = Shape{kNumbers},
                               .read = [this] { return numbers(); },
                               .assign = [this](const Tensor& numbers) { set_numbers(numbers); }},
                              "trainer/position", check_numbers);
  const auto set_reason = [this](const Tensor& text) {
    change([&](Values& values) { values.reason = text.num_elements() > 0 ? text.flat<std::string>()[0] : ""; });
  };
  ops::optional_program_value(inner, "reason",
                              {.dtype = kString,
                               .shape = Shape::unknown_rank(),
                               .expected = Shape{},
                               .read = [this] { return Tensor::scalar(get().reason); },
                               .assign = set_reason},
                              "trainer/reason");
  const auto read_generator = [this] {
    const at::Tensor state = get().generator;
    return to_tensor(state.defined() ? state : at::empty({0}, at::kByte));
  };
  const auto set_generator = [this](const Tensor& state) {
    change(
        [&](Values& values) { values.generator = state.num_elements() > 0 ? to_aten(state).clone() : at::Tensor(); });
  };
  ops::optional_program_value(inner, "epoch_generator",
                              {.dtype = kUInt8,
                               .shape = Shape::unknown_rank(),
                               .expected = Shape{0},
                               .read = read_generator,
                               .assign = set_generator},
                              "trainer/epoch_generator");
  add_epoch_values(inner);
}

// A list of names, each followed by its value.
void LoopPosition::add_epoch_values(const Scope& scope) {
  const auto read = [this] {
    std::vector<std::string> list;
    if (const auto values = get().short_values) {
      for (const auto& [name, bytes] : *values) list.insert(list.end(), {name, bytes});
    }
    return Tensor::of(Shape{static_cast<int64_t>(list.size())}, list);
  };
  const auto assign = [this](const Tensor& saved) {
    const auto list = saved.flat<std::string>();
    auto values = std::make_shared<std::map<std::string, std::string>>();
    for (size_t i = 0; i + 1 < list.size(); i += 2) (*values)[list[i]] = list[i + 1];
    change([&](Values& now) { now.short_values = std::move(values); });
  };
  ops::optional_program_value(
      scope, "epoch_values",
      {.dtype = kString, .shape = Shape::unknown_rank(), .expected = Shape{0}, .read = read, .assign = assign},
      "trainer/epoch_values");
}

LoopPosition::Values LoopPosition::get() const {
  const MutexLock lock(mutex_);
  return values_;
}

bool LoopPosition::is_missing() const {
  const MutexLock lock(mutex_);
  return is_missing_;
}

Tensor LoopPosition::numbers() const {
  const Values now = get();
  return Tensor::of<double>({static_cast<double>(now.outer), now.outer_left ? 1.0 : 0.0, static_cast<double>(now.epoch),
                             static_cast<double>(now.inner), now.inner_left ? 1.0 : 0.0, static_cast<double>(now.batch),
                             static_cast<double>(now.epoch_size), now.finished ? 1.0 : 0.0, now.best_metric,
                             static_cast<double>(now.best_step), static_cast<double>(now.without_gain),
                             static_cast<double>(now.batch_look)});
}

void LoopPosition::set_numbers(const Tensor& numbers) {
  const MutexLock lock(mutex_);
  is_missing_ = numbers.num_elements() != kNumbers;
  if (is_missing_) {
    values_ = {};
    return;
  }
  const auto at = numbers.flat<double>();
  const auto count = [&](size_t i) { return static_cast<int64_t>(at[i]); };
  values_.outer = count(0);
  values_.outer_left = at[1] != 0;
  values_.epoch = count(2);
  values_.inner = count(3);
  values_.inner_left = at[4] != 0;
  values_.batch = count(5);
  values_.epoch_size = count(6);
  values_.finished = at[7] != 0;
  values_.best_metric = at[8];
  values_.best_step = count(9);
  values_.without_gain = count(10);
  values_.batch_look = static_cast<uint64_t>(at[11]);
}

}  // namespace longhaul
