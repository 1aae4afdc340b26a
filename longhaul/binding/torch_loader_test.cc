// Programs whose batches come from torch::data's own loader: what a restart makes of them, and what they are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>
#include <torch/data/transforms/stack.h>

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
