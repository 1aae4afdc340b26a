// A program that saves more, or less, than the one whose checkpoint it restores.
#include "longhaul/ops/external_variable.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A training of `b` and the global step, by a later version of the program.
class ChangedStateTest : public SaverFixture {
 protected:
  ChangedStateTest() {
    Saver(options).save(*session, path);  // with a
  }

  void add_value(const std::string& name) {
    ops::external_variable(scope, name, {.read = [] { return Tensor::scalar(1.0f); }, .assign = [](const Tensor&) {}});
  }
  std::string refusal() {
    Saver saver({.graph = &later});
    return error_of([&] { saver.restore(*make_scripted_session(later), path); });
  }
  std::string warnings(SaverOptions of_saver = {}) {
    of_saver.graph = &later;
    Saver saver(of_saver);
    const LogRecorder log;
    saver.restore(*make_scripted_session(later), path);
    return log.text(LogLevel::kWarning);
  }

  Graph later;
  Scope scope{later};
  Variable kept = ops::variable(scope, "b", Tensor::scalar(0.0f));
  Variable steps = ops::create_global_step(scope);
  Operation train = ops::assign_add(scope, steps, ops::constant(scope, int64_t{1})).op();
};

constexpr const char* kAdded = "add them with ops::optional_program_value in place of ops::external_variable";

TEST_F(ChangedStateTest, AddedValuesOfTheProgramAreToldFromAnotherModel) {
  add_value("best");
  add_value("rounds");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("The checkpoint lacks 2 of the values that the program keeps itself"),
                               HasSubstr("\n  Key best not found in checkpoint\n  Key rounds not found"),
                               HasSubstr(kAdded), HasSubstr("Only the checkpoint has:\n  a\n")));
}

TEST_F(ChangedStateTest, AnAddedVariableIsAnotherModel) {
  add_value("best");
  ops::variable(scope, "c", Tensor::scalar(0.0f));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("The models differ"), Not(HasSubstr(kAdded))));
}

TEST_F(ChangedStateTest, AnAddedValueThatIsTrainedIsAnotherModel) {
  ops::external_variable(scope, "layer", {.read = [] { return Tensor::scalar(1.0f); }, .assign = [](const Tensor&) {}},
                         /*trainable=*/true);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("The models differ"), Not(HasSubstr(kAdded))));
}

TEST_F(ChangedStateTest, AnAddedStateOfAnOptimizerIsAnotherOptimizer) {
  ops::variable(scope, "a", Tensor::scalar(0.0f));
  add_value("SGD/b/momentum_buffer");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("its optimizer (or its averaging) differs"), Not(HasSubstr(kAdded))));
}

TEST_F(ChangedStateTest, RemovedValuesAreNamedWhenTheTrainingContinues) {
  EXPECT_THAT(warnings(), HasSubstr(path + " also has values that this program neither restores nor saves, so its next "
                                           "checkpoints lack them: a. To keep one"));
}

TEST_F(ChangedStateTest, ASaverOfChosenVariablesMayLeaveOutOthers) {
  const std::vector<SaveEntry> chosen{kept, steps};
  EXPECT_THAT(warnings({.var_list = chosen}), Not(HasSubstr("neither restores nor saves")));
}

TEST_F(ChangedStateTest, NothingIsSaidIfNothingIsRemoved) {
  ops::variable(scope, "a", Tensor::scalar(0.0f));
  EXPECT_THAT(warnings(), Not(HasSubstr("neither restores nor saves")));
}

TEST(StateOfAnEvaluation, MayBeLessThanThatOfTheTraining) {
  const testing::TemporaryDirectory directory;
  Graph training, evaluation;
  for (const char* name : {"w", "w/Adam"}) ops::variable(Scope(training), name, Tensor::scalar(0.0f));
  const auto session = make_scripted_session(training);
  session->run(ops::global_variables_initializer(Scope(training)));
  const std::string prefix = Saver({.graph = &training}).save(*session, directory.file("model"));
  ops::variable(Scope(evaluation), "w", Tensor::scalar(0.0f));
  Saver saver({.graph = &evaluation});
  const LogRecorder log;
  saver.restore(*make_scripted_session(evaluation), prefix);
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
}

}  // namespace
}  // namespace longhaul
