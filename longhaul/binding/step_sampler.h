#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "longhaul/data/example_order.h"

namespace longhaul {

struct StepSamplerOptions {
  uint64_t seed = 0;       // of the order
  bool shuffles = true;    // false: each epoch has the examples in their own order
  bool drop_last = false;  // as DataLoaderOptions::drop_last of the loader, which it must equal
};

// The order of the examples for torch::data::make_data_loader, so that a training that is started again continues with
// the batch that comes next. Each epoch has an order of its own, which follows from the seed and the epoch. Each pass
// through the loader begins at the batch that `batches_made` names, and goes to the end of its epoch; so workers may
// read ahead.
//
//   int64_t step = 0;                                // the number of batches that training has had
//   auto loader = torch::data::make_data_loader(
//       std::move(examples), lh::StepSampler(60000, [&] { return step; }, {.seed = 1}),
//       torch::data::DataLoaderOptions(64).workers(4));
//   sv.managed_session([&](lh::Session& session) {
//     step = session.run(training.global_step).item<int64_t>();
//     while (step < last_step && !sv.should_stop()) {
//       for (auto& batch : *loader) {                // the rest of this epoch
//         images = batch.data;                       // which the step function takes
//         session.run(training.train_op);
//         if (++step == last_step || sv.should_stop()) break;
//       }
//     }
//   });
//
// A pass may end early; libtorch then needs a new loader for the next one. The loader must keep the order
// (DataLoaderOptions::enforce_ordering, its default). The size of its batches, and the number of examples, stay the
// same from run to run. `batches_made` is called in the thread that begins a pass. The sampler draws no random numbers
// that others could draw.
class StepSampler : public torch::data::samplers::Sampler<> {
  using Sampler = torch::data::samplers::Sampler<>;
  template <typename Argument>
  static Argument argument_of(void (Sampler::*)(Argument));

 public:
  // Optionals, which are std's since libtorch 2.
  using Size = decltype(argument_of(&Sampler::reset));
  using Batch = decltype(std::declval<Sampler&>().next(size_t{}));

  // InvalidArgumentError: there are no examples.
  StepSampler(int64_t examples, std::function<int64_t()> batches_made, const StepSamplerOptions& options = {});

  // A pass begins. The loader calls both.
  void reset(Size new_size = {}) override;
  // InvalidArgumentError: there is less than a batch of examples, and the last one is dropped. FailedPreconditionError:
  // pass after pass begins with the last, smaller batch, which the loader drops.
  Batch next(size_t batch_size) override;

  // The epoch of the pass under way, from 0.
  int64_t epoch() const { return epoch_; }

  // Nothing: the position is the number of batches, which checkpoints have as the global step.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  void begin_pass(int64_t batch_size);

  const int64_t examples_;
  const std::function<int64_t()> batches_made_;
  const StepSamplerOptions options_;
  const ExampleOrder order_;
  int64_t begins_at_ = 0;  // the pass: the number of batches before it
  bool has_begun_ = false;
  int64_t epoch_ = 0;
  int64_t next_ = 0;        // the place of the next example in the epoch
  int64_t last_lone_ = -1;  // begins_at_ of the last pass that had a smaller batch alone
  int lone_passes_ = 0;     // in a row, at that place
};

}  // namespace longhaul
