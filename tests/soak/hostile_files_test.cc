#include "tests/soak/hostile_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/soak/damage.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BystandersTest : public ::testing::Test {
 protected:
  BystandersTest() { bystanders_.join(training_); }

  std::string checkpoint() {
    BundleWriter writer(FileSystem::real(), temporary_.file("undisturbed-10"));
    writer.add("weights", Tensor::of(Shape{40}, std::vector<float>(40, 1)));
    writer.finish();
    return temporary_.file("undisturbed-10");
  }

  testing::TemporaryDirectory temporary_;
  const std::string place_ = temporary_.file("bystanders"), training_ = temporary_.file("disturbed0");
  const Bystanders bystanders_{place_, checkpoint()};
  Random random_{3};
};

TEST_F(BystandersTest, AreAsTheyWere) {
  EXPECT_NO_THROW(bystanders_.check(training_));
}

TEST_F(BystandersTest, AreSeenToBeGoneOrRenamed) {
  fs::rename(place_ + "/model.ckpt-9.index", place_ + "/model.ckpt-9.index.corrupt");
  EXPECT_ANY_THROW(bystanders_.check(training_));
}

TEST_F(BystandersTest, OfTheTrainingAreSeenToBeGone) {
  fs::remove(training_ + "/notes.txt");
  EXPECT_ANY_THROW(bystanders_.check(training_));
}

TEST_F(BystandersTest, AnythingNewBesideIsSeen) {
  overwrite(temporary_.file("disturbed1"), "");
  EXPECT_ANY_THROW(bystanders_.check(training_));
}

TEST_F(BystandersTest, AreNamedInAStateFileThatSaysNothingElse) {
  EXPECT_EQ(bystanders_.name_in_state_file(training_, random_), "") << "there is none";
  const std::string latest = training_ + "/model.ckpt-20";
  const CheckpointState state{latest, {training_ + "/model.ckpt-10", latest}, {1, 2}, 0, {}};
  write_checkpoint_state(FileSystem::real(), training_, state);
  const auto time = fs::last_write_time(training_ + "/checkpoint");
  for (int i = 0; i < 20; ++i) bystanders_.name_in_state_file(training_, random_);
  const ReadCheckpointState read = read_checkpoint_state(FileSystem::real(), training_);
  EXPECT_EQ(read.status, ReadCheckpointState::Status::kRead) << read.why;
  EXPECT_EQ(read.state.all_model_checkpoint_paths.size(), read.state.all_model_checkpoint_timestamps.size());
  EXPECT_THAT(read.state.model_checkpoint_path, AnyOf(latest, HasSubstr("bystanders")));
  EXPECT_EQ(fs::last_write_time(training_ + "/checkpoint"), time);
}

TEST(Contents, FirstDifference) {
  EXPECT_THAT(first_difference({{"a", "1"}}, {{"a", "1"}}), IsEmpty());
  EXPECT_EQ(first_difference({{"a", "1"}}, {{"a", "2"}}), "a has changed");
  EXPECT_EQ(first_difference({{"a", "1"}}, {}), "a is gone");
  EXPECT_EQ(first_difference({}, {{"a", "1"}}), "a is new");
}

}  // namespace
}  // namespace longhaul::soak
