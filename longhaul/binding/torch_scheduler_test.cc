// Schedulers of all kinds go on where they were.
#include "longhaul/binding/torch_scheduler.h"

#include "longhaul/binding/torch_resume_fixture.h"

#if __has_include(<torch/optim/schedulers/reduce_on_plateau_scheduler.h>)
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#endif

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Rates follow from the number of steps alone.
struct LinearWarmup : torch::optim::LRScheduler {
  explicit LinearWarmup(torch::optim::Optimizer& optimizer, int64_t steps = 6) : LRScheduler(optimizer), steps(steps) {}
  std::vector<double> get_lrs() override {
    return std::vector<double>(get_current_lrs().size(),
                               0.1 * std::min(1.0, static_cast<double>(step_count_) / static_cast<double>(steps)));
  }
  int64_t steps;
};

// Derived from libtorch's class, with a state of its own.
struct Decaying : torch::optim::LRScheduler {
  explicit Decaying(torch::optim::Optimizer& optimizer) : LRScheduler(optimizer) {}
  std::vector<double> get_lrs() override {
    factor *= 0.9;
    return std::vector<double>(get_current_lrs().size(), 0.1 * factor);
  }
  double factor = 1;
};
struct KeptDecaying : Decaying {
  using Decaying::Decaying;
  void keep_in(KeptValues& kept, const std::string& name) { kept.keep(name + "/factor", factor); }
};

// A class of the program alone, that looks at losses.
struct OwnPlateau {
  explicit OwnPlateau(torch::optim::Optimizer& optimizer) : optimizer(optimizer) {}
  void step(double loss) {
    since = loss < best ? 0 : since + 1;
    best = std::min(best, loss);
    if (since < 2) return;
    for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * 0.5);
    since = 0;
  }
  void keep_in(KeptValues& kept, const std::string& name) { kept.keep(name, best, since); }
  torch::optim::Optimizer& optimizer;
  double best = 1e9;
  int since = 0;
};

// A training with one scheduler.
template <typename Scheduler>
struct Scheduled : Trial {
  Scheduled() : scheduler(*optimizer) {
    step = [this](const TorchStep&) {
      optimizer->zero_grad();
      const at::Tensor loss = update(loss_of(torch::randn({16, 4})));
      if constexpr (requires { scheduler.step(1.0f); }) {
        scheduler.step(static_cast<float>(loss.item<double>()));
      } else {
        scheduler.step();
      }
      return loss;
    };
    bind({.schedulers = {&scheduler}});
  }
  Scheduler scheduler;
};

class TorchSchedulerTest : public TorchResumeTest {
 protected:
  template <typename Scheduler>
  std::vector<std::string> expect_exact_with() {
    const Warnings warnings;
    expect_exact([] { return std::make_unique<Scheduled<Scheduler>>(); }, plain_loop);
    return warnings.seen();
  }
};

TEST_F(TorchSchedulerTest, ThatFollowsTheCountIsExactAsItIs) {
  EXPECT_THAT(expect_exact_with<LinearWarmup>(), IsEmpty());
}

TEST_F(TorchSchedulerTest, WithAStateOfItsOwnIsExactOnceItKeepsIt) {
  EXPECT_THAT(expect_exact_with<KeptDecaying>(), IsEmpty());
}

TEST_F(TorchSchedulerTest, OfAnotherClassThanLibtorchsIsExactOnceItKeepsItsState) {
  EXPECT_THAT(expect_exact_with<OwnPlateau>(), IsEmpty());
}

TEST_F(TorchSchedulerTest, ThatChangesMembersWhichNoCheckpointHasIsNamed) {
  Scheduled<Decaying> trial;
  const Warnings warnings;
  trial.start();
  trial.train(3);
  EXPECT_THAT(warnings.seen(), ElementsAre(AllOf(HasSubstr("schedulers/0 changes members of its class"),
                                                 HasSubstr("keep_in(lh::KeptValues& kept"))));
}

TEST_F(TorchSchedulerTest, StatesAreInCheckpointsByTheirPlaces) {
  Trial trial;
  LinearWarmup warmup(*trial.optimizer);
  KeptDecaying decaying(*trial.optimizer);
  OwnPlateau plateau(*trial.optimizer);
  trial.bind({.schedulers = {&warmup, &decaying, &plateau}});
  trial.start();
  for (const char* name :
       {"schedulers/0", "schedulers/1", "kept/schedulers/1/factor", "kept/schedulers/2/0", "kept/schedulers/2/1"}) {
    EXPECT_EQ(trial.session.run(std::string(name) + ":0").num_elements(), 1) << name;
  }
}

TEST_F(TorchSchedulerTest, OfTheProgramThatStepsInTheLoopIsNamed) {
  Scheduled<OwnPlateau> trial;
  const Warnings warnings;
  trial.start();
  trial.train();
  for (int i = 0; i < 3; ++i) trial.scheduler.step(1e10);
  trial.train();
  EXPECT_THAT(warnings.seen(), AllOf(Contains(HasSubstr("a scheduler stepped between two steps")),
                                     Contains(HasSubstr("kept/schedulers/0/"))));
}

#if __has_include(<torch/optim/schedulers/reduce_on_plateau_scheduler.h>)
// Waits for the loss to fall, in vain.
struct Plateau : torch::optim::ReduceLROnPlateauScheduler {
  explicit Plateau(torch::optim::Optimizer& optimizer)
      : ReduceLROnPlateauScheduler(optimizer, min, /*factor=*/0.5, /*patience=*/1, /*threshold=*/1e-4, rel,
                                   /*cooldown=*/1) {}
};

TEST_F(TorchSchedulerTest, ReduceLROnPlateauIsExact) {
  EXPECT_THAT(expect_exact_with<Plateau>(), IsEmpty());
}

// The same with other parameters, all of them.
struct OtherPlateau : torch::optim::ReduceLROnPlateauScheduler {
  explicit OtherPlateau(torch::optim::Optimizer& optimizer)
      : ReduceLROnPlateauScheduler(optimizer, max, /*factor=*/0.25, /*patience=*/2, /*threshold=*/1e-3, abs,
                                   /*cooldown=*/0, /*min_lr=*/{0.5}, /*eps=*/1e-6) {}
};

TEST_F(TorchSchedulerTest, ReduceLROnPlateauWithOtherParametersAfterARestartIsNamed) {
  std::string saved;
  {
    Scheduled<Plateau> first;
    first.start();
    first.train(3);
    saved = first.save(path_);
  }
  Scheduled<OtherPlateau> second;
  const Warnings warnings;
  second.start(saved);
  second.train();
  EXPECT_THAT(
      warnings.seen(),
      ElementsAre(AllOf(
          HasSubstr("factor of schedulers/0: was 0.5, is 0.25"), HasSubstr("patience of schedulers/0: was 1, is 2"),
          HasSubstr("threshold of schedulers/0: was 0.0001, is 0.001"),
          HasSubstr("cooldown of schedulers/0: was 1, is 0"), HasSubstr("eps of schedulers/0: was 1e-08, is 1e-06"),
          HasSubstr("mode (0: min, 1: max) of schedulers/0: was 0, is 1"),
          HasSubstr("threshold_mode (0: rel, 1: abs) of schedulers/0: was 0, is 1"),
          HasSubstr("min_lr 0 of schedulers/0: was 0, is 0.5"))));
}
#endif

}  // namespace
}  // namespace longhaul
