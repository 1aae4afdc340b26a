// Programs whose batches come from torch::data's own loader: what a restart makes of them, and what they are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/transforms/stack.h>

#include "longhaul/binding/step_sampler.h"
#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using torch::data::DataLoaderOptions;
using torch::data::samplers::RandomSampler;

constexpr int64_t kExamples = 12, kBatch = 4, kBatches = kExamples / kBatch;

struct Points : torch::data::datasets::Dataset<Points> {
  torch::data::Example<> get(size_t index) override {
    return {torch::full({4}, 0.1 * static_cast<double>(index)), torch::zeros({1})};
  }
  torch::optional<size_t> size() const override { return kExamples; }
};

// The remedy of the guide: an order drawn from a generator that is seeded by the epoch.
class EpochSampler : public torch::data::samplers::Sampler<> {
 public:
  explicit EpochSampler(int64_t epoch) : epoch_(epoch) {}
  void reset(torch::optional<size_t> = torch::nullopt) override {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(epoch_++));
    order_ = at::randperm(kExamples, generator);
    next_ = 0;
  }
  torch::optional<std::vector<size_t>> next(size_t batch) override {
    if (next_ == kExamples) return torch::nullopt;
    std::vector<size_t> indices;
    for (size_t i = 0; i < batch; ++i) indices.push_back(static_cast<size_t>(order_[next_++].item<int64_t>()));
    return indices;
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  int64_t epoch_, next_ = kExamples;
  at::Tensor order_;
};

auto shuffling_loader() {
  return torch::data::make_data_loader<RandomSampler>(Points().map(torch::data::transforms::Stack<>()),
                                                      DataLoaderOptions(kBatch));
}

class TorchLoaderTest : public TorchResumeTest {
 protected:
  // Works on `batch_`.
  std::unique_ptr<Trial> make() {
    auto trial = std::make_unique<Trial>();
    trial->step = [this, trial = trial.get()](const TorchStep&) {
      trial->optimizer->zero_grad();
      return trial->update(trial->loss_of(batch_));
    };
    trial->bind();
    return trial;
  }
  const Make make_ = [this] { return make(); };

  // As libtorch's tutorials have it.
  const Loop epochs_ = [this](Trial& trial, int64_t first, int64_t last) {
    const auto loader = shuffling_loader();
    for (int64_t i = first; i < last;) {
      for (const auto& batch : *loader) {
        if (i++ == last) break;
        batch_ = batch.data;
        trial.train();
      }
    }
  };
  // As the guide has it: the order follows from the epoch, and what the epoch has had is skipped.
  const Loop epochs_by_number_ = [this](Trial& trial, int64_t first, int64_t last) {
    const auto loader = torch::data::make_data_loader(Points().map(torch::data::transforms::Stack<>()),
                                                      EpochSampler(first / kBatches), DataLoaderOptions(kBatch));
    for (int64_t i = first - first % kBatches; i < last;) {
      for (const auto& batch : *loader) {
        if (i == last) break;
        if (i++ < first) continue;
        batch_ = batch.data;
        trial.train();
      }
    }
  };

  at::Tensor batch_;
};

TEST_F(TorchLoaderTest, ThatShufflesIsNamedWhenItsSecondEpochBegins) {
  const Warnings warnings;
  end_of(make_, epochs_);
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("a loader that shuffles")));
}

TEST_F(TorchLoaderTest, ThatShufflesIsNamedAfterARestartWhichIsNotExact) {
  constexpr int64_t kInTheFirstEpoch = 2;
  const std::vector<at::Tensor> undisturbed = end_of(make_, epochs_);
  const Warnings warnings;
  EXPECT_FALSE(equal(end_of(make_, epochs_, kInTheFirstEpoch), undisturbed)) << "then there is nothing to warn of";
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("a loader that shuffles")));
}

TEST_F(TorchLoaderTest, WhoseOrderFollowsFromTheEpochIsExact) {
  const Warnings warnings;
  expect_exact(make_, epochs_by_number_);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

// With workers that read ahead, batches of which the last of an epoch is smaller, and passes that end early.
class StepSamplerTest : public TorchLoaderTest {
 protected:
  static constexpr size_t kOddBatch = 5;  // 5, 5 and 2 examples

  static auto loader(const std::function<int64_t()>& made, bool drops_last, size_t workers) {
    return torch::data::make_data_loader(
        Points().map(torch::data::transforms::Stack<>()),
        StepSampler(kExamples, made, {.seed = 3, .drop_last = drops_last}),
        DataLoaderOptions(kOddBatch).workers(workers).max_jobs(2 * workers).drop_last(drops_last));
  }
  Loop passes(bool drops_last, size_t workers, int64_t longest_pass = 1000) {
    return [=, this](Trial& trial, int64_t first, int64_t last) {
      int64_t step = first;
      auto batches = loader([&] { return step; }, drops_last, workers);
      while (step < last) {
        int64_t passed = 0;
        for (const auto& batch : *batches) {
          batch_ = batch.data;
          trial.train();
          if (++step == last || ++passed == longest_pass) break;
        }
        if (passed == longest_pass)
          batches = loader([&] { return step; }, drops_last, workers);  // as libtorch wants it
      }
    };
  }
  // The examples of a training's batches, from batch `first` on.
  static std::vector<std::vector<size_t>> drawn(StepSampler sampler, int64_t* made, int64_t batches) {
    std::vector<std::vector<size_t>> all;
    while (static_cast<int64_t>(all.size()) < batches) {
      sampler.reset();
      while (const auto batch = sampler.next(kOddBatch)) {
        all.push_back(*batch);
        ++*made;
      }
    }
    all.resize(static_cast<size_t>(batches));
    return all;
  }
};

TEST_F(StepSamplerTest, GoesOnWithTheNextBatch) {
  const Warnings warnings;
  for (const bool drops_last : {false, true}) {
    for (const size_t workers : {0, 2}) expect_exact(make_, passes(drops_last, workers));
  }
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(StepSamplerTest, APassThatEndsEarlyChangesNothing) {
  EXPECT_TRUE(equal(end_of(make_, passes(false, 2, /*longest_pass=*/2)), end_of(make_, passes(false, 2))));
}

TEST_F(StepSamplerTest, AnEpochHasEachExampleOnceInAnOrderOfItsOwn) {
  int64_t made = 0;
  const auto batches = drawn(StepSampler(kExamples, [&] { return made; }, {.seed = 3}), &made, 6);
  std::vector<std::vector<size_t>> epochs(2);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(batches[i].size(), i % 3 == 2 ? 2u : kOddBatch);
    epochs[i / 3].insert(epochs[i / 3].end(), batches[i].begin(), batches[i].end());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (size_t i = 0; i < kExamples; ++i) EXPECT_EQ(epoch[i], i);
  }
  made = 0;
  EXPECT_NE(drawn(StepSampler(kExamples, [&] { return made; }, {.seed = 4}), &made, 6), batches);
}

TEST_F(StepSamplerTest, WithoutShufflingHasTheExamplesInTheirOrder) {
  int64_t made = 4;
  const auto batches = drawn(StepSampler(kExamples, [&] { return made; }, {.shuffles = false}), &made, 2);
  EXPECT_THAT(batches[0], ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(batches[1], ElementsAre(10, 11));
}

TEST_F(StepSamplerTest, AnEpochIsKnown) {
  int64_t made = 7;
  StepSampler sampler(kExamples, [&] { return made; });
  sampler.reset();
  sampler.next(kOddBatch);
  EXPECT_EQ(sampler.epoch(), 2);
}

// Such a loop would never end.
TEST_F(StepSamplerTest, ALoaderThatDropsTheBatchWhichTheSamplerCountsIsNamed) {
  int64_t made = 2;
  const auto batches = torch::data::make_data_loader(Points().map(torch::data::transforms::Stack<>()),
                                                     StepSampler(kExamples, [&] { return made; }),
                                                     DataLoaderOptions(kOddBatch).drop_last(true));
  EXPECT_THAT(message_of<FailedPreconditionError>([&] {
                for (int pass = 0; pass < 5; ++pass) {
                  for (const auto& batch : *batches) made += batch.data.size(0);
                }
              }),
              HasSubstr("Set StepSamplerOptions::drop_last"));
}

TEST_F(StepSamplerTest, WhatCannotBeIsRefused) {
  const auto none = [] { return int64_t{0}; };
  EXPECT_THROW(StepSampler(0, none), InvalidArgumentError);
  StepSampler few(3, none, {.drop_last = true});
  few.reset();
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { few.next(5); }), HasSubstr("fewer than a batch of 5"));
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { few.reset(4); }), HasSubstr("got a dataset of 4"));
  StepSampler before(3, [] { return int64_t{-1}; });
  EXPECT_THROW(before.reset(), InvalidArgumentError);
}

// A gap that the guide names: all that it draws is drawn within a step.
TEST_F(TorchLoaderTest, InsideTheStepFunctionIsNotSeen) {
  const Make with_loader = [this] {
    auto trial = std::make_unique<Trial>();
    auto loader = std::shared_ptr(shuffling_loader());
    auto next = std::make_shared<decltype(loader->begin())>(loader->begin());
    trial->step = [loader, next, trial = trial.get()](const TorchStep&) {
      if (*next == loader->end()) *next = loader->begin();
      const at::Tensor batch = (**next).data;
      ++*next;
      trial->optimizer->zero_grad();
      return trial->update(trial->loss_of(batch));
    };
    trial->bind();
    return trial;
  };
  const std::vector<at::Tensor> undisturbed = end_of(with_loader, plain_loop);
  const Warnings warnings;
  EXPECT_FALSE(equal(end_of(with_loader, plain_loop, 2), undisturbed));
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

}  // namespace
}  // namespace longhaul
