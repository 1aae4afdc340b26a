// Values of the program that are kept in its checkpoints, by one line for each.
#include "longhaul/binding/kept_values.h"

#include <array>
#include <deque>

#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

enum class Phase : uint8_t { kCollecting, kTraining };

// Has parts of its own.
struct Env {
  double angle = 0;
  int64_t turns = 0;
  void keep_in(KeptValues& kept, const std::string& name) { kept.keep(name, angle, turns); }
};

// One of each type that can be kept, and none of its values is the default.
struct Values {
  bool is_warm = false;
  char grade = 0;
  int8_t tiny = 0;
  uint16_t small = 0;
  int count = 0;
  uint32_t mask = 0;
  long long total = 0;
  uint64_t large = 0;
  float rate = 0;
  double best = 0;
  Phase phase = Phase::kCollecting;
  std::string label = "none";
  std::vector<double> recent{1, 2};
  std::vector<bool> seen{false};
  std::vector<std::string> names{"a"};
  std::deque<int> window;
  std::array<float, 3> point{};
  std::optional<double> target;
  std::optional<int> unset = 5;
  std::mt19937 engine{7};
  std::mt19937_64 wide{7};
  std::minstd_rand simple{7};
  std::normal_distribution<double> normal{0, 1};
  at::Tensor position = at::zeros({2});
  at::Tensor emptied = at::ones({4});
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  Env env;

  KeptValues kept() {
    return KeptValues()
        .keep("is_warm", is_warm)
        .keep("grade", grade)
        .keep("tiny", tiny)
        .keep("small", small)
        .keep("count", count)
        .keep("mask", mask)
        .keep("total", total)
        .keep("large", large)
        .keep("rate", rate)
        .keep("best", best)
        .keep("phase", phase)
        .keep("label", label)
        .keep("lists", recent, seen, names, window, point)
        .keep("target", target)
        .keep("unset", unset)
        .keep("engines", engine, wide, simple, normal)
        .keep("position", position)
        .keep("emptied", emptied)
        .keep("generator", generator)
        .keep("env", env);
  }
  void change() {
    is_warm = true;
    grade = 'b';
    tiny = -3;
    small = 65000;
    count = -7;
    mask = 0xffff0000;
    total = -(1LL << 40);
    large = ~uint64_t{0};
    rate = 0.1f;
    best = 0.1;
    phase = Phase::kTraining;
    label = "second";
    recent.clear();
    seen = {true, false, true};
    names = {"b", "", "c"};
    window = {1, 2, 3};
    point = {1, 2, 3};
    target = 2.5;
    unset.reset();
    engine.discard(1000);
    wide.discard(3);
    simple.discard(3);
    normal(engine);  // and has one left over
    position = at::rand({3}, at::kFloat);
    emptied = at::empty({0});
    at::rand({3}, generator);
    env = {.angle = 0.25, .turns = 4};
  }
};

// Kept in a graph without a bound program.
class KeptValuesTest : public TorchResumeTest {
 protected:
  static std::string saved(KeptValues kept, const std::string& path) {
    Graph graph;
    kept.add_to(Scope(graph));
    DirectSession session(graph, {});
    return Saver({.graph = &graph}).save(session, path);
  }
  static void restore(KeptValues kept, const std::string& prefix) {
    Graph graph;
    kept.add_to(Scope(graph));
    DirectSession session(graph, {});
    Saver({.graph = &graph}).restore(session, prefix);
  }
};

TEST_F(KeptValuesTest, EveryTypeComesBackAsItWas) {
  Values a;
  a.change();
  const std::string prefix = saved(a.kept(), path_);
  Values b;
  const Warnings warnings;
  restore(b.kept(), prefix);
  EXPECT_THAT(warnings.seen(), IsEmpty());
  const KeptValues of_a = a.kept(), of_b = b.kept();
  ASSERT_GT(of_a.values().size(), 25u);
  for (size_t i = 0; i < of_a.values().size(); ++i) {
    EXPECT_TRUE(identical(of_a.values()[i].read(), of_b.values()[i].read())) << of_a.values()[i].name;
  }
  EXPECT_EQ(b.grade, 'b');
  EXPECT_EQ(b.large, ~uint64_t{0});
  EXPECT_EQ(b.phase, Phase::kTraining);
  EXPECT_TRUE(b.recent.empty());
  EXPECT_FALSE(b.unset);
  EXPECT_EQ(b.emptied.sizes(), (std::vector<int64_t>{0}));
  EXPECT_EQ(b.engine(), a.engine());
  EXPECT_EQ(b.normal(b.engine), a.normal(a.engine)) << "the number that was left over";
  EXPECT_EQ(b.env.turns, 4);
}

TEST_F(KeptValuesTest, ALookAtAValueTellsOfEachChange) {
  Values values;
  const KeptValues kept = values.kept();
  std::vector<uint64_t> before;
  for (const KeptValue& value : kept.values()) before.push_back(value.look());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(kept.values()[i].look(), before[i]);
  values.change();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NE(kept.values()[i].look(), before[i]) << kept.values()[i].name;
}

TEST_F(KeptValuesTest, HaveTheirNames) {
  int64_t count = 3;
  at::Tensor position = at::ones({2, 2}), goal = at::ones({2});
  Graph graph;
  KeptValues().keep("count", count).keep("env", position, goal).add_to(Scope(graph));
  DirectSession session(graph, {});
  EXPECT_EQ(session.run("kept/count:0").shape(), Shape{});
  EXPECT_EQ(session.run("kept/env/0:0").shape(), (Shape{2, 2}));
  EXPECT_EQ(session.run("kept/env/1:0").shape(), (Shape{2}));
}

TEST_F(KeptValuesTest, ACheckpointThatLacksOneIsRestoredWithAWarningAndTheProgramsValueStays) {
  int64_t count = 3, other = 5;
  std::vector<double> list{1, 2};
  const std::string prefix = saved(KeptValues().keep("count", count), path_);
  count = 0;
  const Warnings warnings;
  restore(KeptValues().keep("count", count).keep("other", other).keep("list", list), prefix);
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("lacks kept/list, kept/other, which this program saves")));
  EXPECT_EQ(count, 3);
  EXPECT_EQ(other, 5);
  EXPECT_THAT(list, ElementsAre(1, 2));
}

TEST_F(KeptValuesTest, AnotherTypeOrShapeIsRefusedByNameAndNothingIsChanged) {
  int64_t count = 3;
  std::array<float, 2> point{1, 2};
  double best = 5;
  std::string engine = "no engine";
  const std::string prefix =
      saved(KeptValues().keep("best", best).keep("count", count).keep("point", point).keep("engine", engine), path_);
  best = 0;
  const auto refusal = [&](KeptValues kept) {
    return message_of<InvalidArgumentError>([&] { restore(std::move(kept.keep("best", best)), prefix); });
  };
  int32_t narrow = 0;
  EXPECT_THAT(refusal(KeptValues().keep("count", narrow)),
              AllOf(HasSubstr("kept/count is int32 in the graph"), HasSubstr("in the checkpoint is int64")));
  std::vector<int64_t> list;
  EXPECT_THAT(refusal(KeptValues().keep("count", list)), HasSubstr("kept/count is a list in this program"));
  float single = 0;
  EXPECT_THAT(refusal(KeptValues().keep("point", single)),
              HasSubstr("kept/point is a single value in this program, and has the shape [2]"));
  std::array<float, 3> longer{};
  EXPECT_THAT(refusal(KeptValues().keep("point", longer)),
              HasSubstr("kept/point has 3 elements in this program, and 2 in the checkpoint"));
  std::mt19937 dice;
  EXPECT_THAT(refusal(KeptValues().keep("engine", dice)),
              AllOf(HasSubstr("kept/engine is a random number engine"), HasSubstr("'no engine'")));
  EXPECT_EQ(best, 0);
}

TEST_F(KeptValuesTest, ANameIsTakenOnce) {
  int a = 0, b = 0;
  KeptValues kept;
  kept.keep("a", a);
  EXPECT_THAT(message_of<AlreadyExistsError>([&] { kept.keep("a", b); }), HasSubstr("already kept as a"));
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { kept.keep("", b); }), HasSubstr("has no name"));
  at::Tensor undefined;
  EXPECT_THAT(message_of<InvalidArgumentError>([&] { kept.keep("t", undefined); }), HasSubstr("kept/t is undefined"));
}

// A learner that acts by its own dice, and counts.
struct Learner : Trial {
  Learner() {
    step = [this](const TorchStep&) {
      ++episodes;
      const float first = std::uniform_real_distribution<float>(0, 1)(dice);
      position = (position + normal(dice)).clamp(-3, 3);
      recent.push_back(first);
      if (recent.size() > 4) recent.pop_front();
      optimizer->zero_grad();
      const at::Tensor loss = update(loss_of(torch::randn({16, 4}) * first + position + recent.front()));
      best = std::min(best, loss.item<float>());
      return loss * (episodes % 3 == 0 ? 1 : best);
    };
    TorchTrainingOptions options;
    options.kept.keep("episodes", episodes).keep("dice", dice, normal).keep("env", position, recent, best);
    bind(options);
  }
  int64_t episodes = 0;
  std::mt19937 dice{11};
  std::normal_distribution<double> normal{0, 0.5};
  at::Tensor position = at::zeros({4});
  std::deque<float> recent;
  float best = 1e9f;
};

TEST_F(KeptValuesTest, OfABoundProgramGoOnBitForBit) {
  const Warnings warnings;
  expect_exact([] { return std::make_unique<Learner>(); }, plain_loop);
  EXPECT_THAT(warnings.seen(), IsEmpty());
}

TEST_F(KeptValuesTest, AChangeBetweenTwoStepsIsNamed) {
  Learner learner;
  const Warnings warnings;
  learner.start();
  learner.train();
  learner.best = 1;
  learner.train();
  EXPECT_THAT(warnings.seen(), ElementsAre(HasSubstr("kept/env/2 was changed between two steps")));
}

TEST_F(KeptValuesTest, AStepThatFailsWhenItHasChangedOneLeavesNothingToSave) {
  Learner learner;
  learner.start();
  learner.train(2);
  const std::string saved = learner.save(path_);
  const auto step = learner.step;
  learner.step = [&](const TorchStep&) -> at::Tensor {
    ++learner.episodes;
    throw OutOfRangeError("the input has ended");
  };
  EXPECT_THROW(learner.train(), OutOfRangeError);
  EXPECT_THAT(message_of<FailedPreconditionError>([&] { learner.save(path_); }), HasSubstr("a step failed after"));
  EXPECT_EQ(learner.start(saved), 2);
  EXPECT_EQ(learner.episodes, 2);
  learner.step = step;
  learner.train();
  EXPECT_NO_THROW(learner.save(path_));
}

TEST_F(KeptValuesTest, AStepThatFailsBeforeItChangesAnythingCostsNothing) {
  Learner learner;
  learner.start();
  learner.step = [](const TorchStep&) -> at::Tensor { throw OutOfRangeError("the input has ended"); };
  EXPECT_THROW(learner.train(), OutOfRangeError);
  EXPECT_NO_THROW(learner.save(path_));
}

}  // namespace
}  // namespace longhaul
