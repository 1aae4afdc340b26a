#include "longhaul/train/saved_state/parameter_groups.h"

#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class ParameterGroupsTest : public SaverFixture {
 protected:
  // Of variables of these names, all of which a checkpoint is taken of, only the first is restored: what that says.
  std::string restore_first_of(const std::vector<std::string>& names) {
    Graph other;
    std::vector<Variable> variables;
    for (const auto& name : names) variables.push_back(ops::variable(Scope(other), name, Tensor::scalar(1.0f)));
    const auto fresh = make_scripted_session(other);
    fresh->run(ops::global_variables_initializer(Scope(other)));
    Saver({.graph = &other}).save(*fresh, path);
    return error_of(
        [&] { Saver({.graph = &other, .var_list = {{variables.front()}}, .name = "some"}).restore(*fresh, path); });
  }
};

TEST_F(ParameterGroupsTest, AnotherNumberThanInTheCheckpointIsAnError) {
  EXPECT_THAT(restore_first_of({"SGD/group_0/lr", "SGD/group_1/lr"}),
              HasSubstr("the optimizer SGD has 1 parameter group here and 2 in the checkpoint"));
}

TEST_F(ParameterGroupsTest, VariablesOfTheProgramMayBeCalledLikeThat) {
  EXPECT_EQ(restore_first_of({"net/group_0/conv/w", "net/group_1/conv/w"}), "");
}

}  // namespace
}  // namespace longhaul
