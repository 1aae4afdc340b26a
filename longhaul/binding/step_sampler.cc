#include "longhaul/binding/step_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr int kLonePasses = 3;  // two may be a program that begins a pass again without a step

int64_t checked(int64_t examples) {
  if (examples > 0) return examples;
  throw InvalidArgumentError(fmt::format("a StepSampler has {} examples: pass the size of the dataset", examples));
}

}  // namespace

StepSampler::StepSampler(int64_t examples, std::function<int64_t()> batches_made, const StepSamplerOptions& options)
    : examples_(checked(examples)),
      batches_made_(std::move(batches_made)),
      options_(options),
      order_(examples, options.seed) {}

void StepSampler::reset(Size new_size) {
  if (new_size && static_cast<int64_t>(*new_size) != examples_) {
    throw InvalidArgumentError(
        fmt::format("a StepSampler for {} examples got a dataset of {}: its order follows from "
                    "the number of examples, which must not change",
                    examples_, *new_size));
  }
  begins_at_ = batches_made_();
  if (begins_at_ < 0) {
    throw InvalidArgumentError(
        fmt::format("the function of a StepSampler returned {} as the number of batches made", begins_at_));
  }
  has_begun_ = false;
}

void StepSampler::begin_pass(int64_t batch_size) {
  const int64_t rest = examples_ % batch_size;
  const int64_t batches = examples_ / batch_size + (rest > 0 && !options_.drop_last ? 1 : 0);
  if (batches == 0) {
    throw InvalidArgumentError(
        fmt::format("a StepSampler has {} examples, fewer than a batch of {}, and drops the last "
                    "batch: there is nothing to train on",
                    examples_, batch_size));
  }
  has_begun_ = true;
  epoch_ = begins_at_ / batches;
  next_ = begins_at_ % batches * batch_size;
  if (examples_ - next_ >= batch_size) {
    lone_passes_ = 0;
    return;
  }
  lone_passes_ = last_lone_ == begins_at_ ? lone_passes_ + 1 : 1;
  last_lone_ = begins_at_;
  if (lone_passes_ < kLonePasses) return;
  throw FailedPreconditionError(
      fmt::format("{} passes through a loader began with its last batch of {} examples, and no step was made with it: "
                  "the loader drops that batch. Set StepSamplerOptions::drop_last as DataLoaderOptions::drop_last",
                  lone_passes_, rest));
}

StepSampler::Batch StepSampler::next(size_t batch_size) {
  if (!has_begun_) begin_pass(static_cast<int64_t>(batch_size));
  const int64_t end = std::min(examples_, next_ + static_cast<int64_t>(batch_size));
  if (next_ == examples_ || (options_.drop_last && end - next_ < static_cast<int64_t>(batch_size))) return {};
  std::vector<size_t> indices;
  for (; next_ < end; ++next_)
    indices.push_back(static_cast<size_t>(options_.shuffles ? order_.at(epoch_ * examples_ + next_) : next_));
  return indices;
}

void StepSampler::save(torch::serialize::OutputArchive& /*archive*/) const {}

void StepSampler::load(torch::serialize::InputArchive& /*archive*/) {}

}  // namespace longhaul
