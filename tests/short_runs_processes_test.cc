// A training that is killed again and again before its first checkpoint is due.
#include "longhaul/io/files/file.h"
#include "tests/preemption_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ShortRunsProcessTest : public PreemptionProcessTest {
 protected:
  // Until its journal has marked, five seconds after its first step, how far it has come.
  std::string kill_before_its_first_save() {
    const auto training = start();
    EXPECT_TRUE(soon([&] { return has_marked(); })) << training->errors();
    training->send(SIGKILL);
    training->wait();
    return training->errors();
  }
  bool has_marked() const {
    const std::string journal = read_file(FileSystem::real(), logdir() + "/run.journal");
    const size_t first_step = journal.find(" training ");
    return first_step != std::string::npos && journal.find(" mark ", first_step) != std::string::npos;
  }
};

TEST_P(ShortRunsProcessTest, MakesProgressAfterThreeKills) {
  kill_before_its_first_save();
  const int64_t step = newest_step();  // the first save of all is of about the beginning
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(kill_before_its_first_save(), Not(HasSubstr("this run is due after")));
    EXPECT_EQ(newest_step(), step);
  }
  const auto training = start();
  EXPECT_GT(wait_for_checkpoint_after(step), step) << "the interval is 600 s";
  training->send(SIGKILL);
  training->wait();
  EXPECT_THAT(training->errors(), HasSubstr("the last 3 runs began at step " + std::to_string(step) +
                                            " and ended before they saved a later"));
}

INSTANTIATE_TEST_SUITE_P(, ShortRunsProcessTest, ::testing::Values("supervisor", "monitored"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace longhaul
