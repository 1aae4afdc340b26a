#include "longhaul/train/saved_state/nan_watch.h"

#include <cmath>
#include <limits>

#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(NanInASample, IsSeenInEachFloatingType) {
  EXPECT_TRUE(has_nan_in_sample(Tensor::of<float>({1, kNan})));
  EXPECT_TRUE(has_nan_in_sample(Tensor::of<double>({1, std::nan("")})));
  EXPECT_TRUE(has_nan_in_sample(Tensor::of<Half>({Half(kNan)})));
  EXPECT_TRUE(has_nan_in_sample(Tensor::of<BFloat16>({BFloat16(1.0f), BFloat16(kNan)})));
  EXPECT_FALSE(has_nan_in_sample(Tensor::of<float>({1, INFINITY, -INFINITY, 0})));
  EXPECT_FALSE(has_nan_in_sample(Tensor::of<int64_t>({1, 2})));
  EXPECT_FALSE(has_nan_in_sample(Tensor::of<float>(std::vector<float>{})));
  EXPECT_FALSE(has_nan_in_sample(Tensor::scalar("nan")));
  EXPECT_FALSE(has_nan_in_sample(Tensor()));
}

TEST(NanInASample, IsLookedForFromTheFirstElementToTheLast) {
  std::vector<float> elements(1000, 0.0f);
  elements.back() = kNan;
  EXPECT_TRUE(has_nan_in_sample(Tensor::of(elements)));
  elements.back() = 0;
  elements.front() = kNan;
  EXPECT_TRUE(has_nan_in_sample(Tensor::of(elements)));
  EXPECT_TRUE(has_nan_in_sample(Tensor::of(std::vector<float>(17, kNan))));
}

TEST(NanWatchTest, RecordsLittleWhateverHasBecomeNan) {
  std::vector<SaverNodes::SavedTensor> tensors(2000);
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors[i].name = "a/long/name/of/a/variable/in/a/large/network/" + std::to_string(i);
  NanWatch watch;
  watch.look(tensors, std::vector<Tensor>(tensors.size(), Tensor::scalar(1.0f)));
  watch.saved("runs/m-1");
  watch.look(tensors, std::vector<Tensor>(tensors.size(), Tensor::scalar(kNan)));
  size_t bytes = 0;
  const Environment record = watch.record();
  for (const auto& [name, value] : record) bytes += name.size() + value.size();
  EXPECT_LT(bytes, size_t{8} << 10);
  NanWatch restarted;
  restarted.restored(FileSystem::real(), "runs/m-2", record);
  restarted.look(tensors, std::vector<Tensor>(tensors.size(), Tensor::scalar(kNan)));
  EXPECT_EQ(restarted.last_without(), "runs/m-1");
}

// A training whose weights become NaN, with three checkpoints at a time.
class NanInCheckpoints : public SaverFixture {
 protected:
  NanInCheckpoints() {
    options.max_to_keep = 3;
    saver = std::make_unique<Saver>(options);
  }
  std::string at(int n) const { return path + "-" + std::to_string(n); }
  // What is logged when the step n is saved with this in the variable a.
  std::string warning_of(int n, float value) {
    set(a, value);
    const LogRecorder log;
    saver->save(*session, path, n);
    return log.text(LogLevel::kWarning);
  }
  std::vector<int> there() {
    std::vector<int> steps;
    for (int n = 0; n < 30; ++n) {
      if (exists(at(n))) steps.push_back(n);
    }
    return steps;
  }
  // Another process goes on from that checkpoint. Returns what it logs.
  std::string restart_from(int n) {
    saver = std::make_unique<Saver>(options);
    const LogRecorder log;
    saver->restore(*session, at(n));
    saver->recover_last_checkpoints(state());
    return log.text(LogLevel::kWarning);
  }

  std::unique_ptr<Saver> saver;
};

TEST_F(NanInCheckpoints, AreNamedOnceAndTheLastOneWithoutIsKept) {
  warning_of(1, 0.5f);
  EXPECT_EQ(warning_of(2, 0.5f), "");
  EXPECT_THAT(warning_of(3, kNan),
              AllOf(HasSubstr(at(3) + " is saved with NaNs that the previous checkpoint did not have, in a"),
                    HasSubstr("The last checkpoint without them is " + at(2)), HasSubstr("in the file checkpoint of")));
  for (int n = 4; n < 9; ++n) EXPECT_EQ(warning_of(n, kNan), "");
  EXPECT_THAT(there(), ElementsAre(2, 6, 7, 8));
}

TEST_F(NanInCheckpoints, OneWithoutLetsTheOtherGo) {
  for (int n = 1; n <= 2; ++n) warning_of(n, 0.5f);
  for (int n = 3; n < 9; ++n) warning_of(n, kNan);
  EXPECT_EQ(warning_of(9, 0.5f), "");
  EXPECT_THAT(there(), ElementsAre(7, 8, 9));
  EXPECT_THAT(warning_of(10, kNan), HasSubstr("The last checkpoint without them is " + at(9))) << "it is news again";
}

TEST_F(NanInCheckpoints, WhatIsNanByItsNatureIsNoSign) {
  set(b, kNan);
  for (int n = 1; n < 6; ++n) EXPECT_EQ(warning_of(n, 0.5f), "");
  EXPECT_THAT(there(), ElementsAre(3, 4, 5));
  EXPECT_THAT(warning_of(6, kNan), AllOf(HasSubstr("did not have, in a."), HasSubstr("without them is " + at(5))));
}

TEST_F(NanInCheckpoints, ARestartFromOneKeepsTheLastOneWithoutAndSaysSo) {
  warning_of(1, 0.5f);
  for (int n = 2; n < 6; ++n) warning_of(n, kNan);
  EXPECT_THAT(restart_from(5), AllOf(HasSubstr(at(5) + " is restored with NaNs"), HasSubstr("without them is " + at(1)),
                                     HasSubstr("(model_checkpoint_path: \"model-1\")")));
  for (int n = 6; n < 12; ++n) EXPECT_EQ(warning_of(n, kNan), "");
  EXPECT_THAT(there(), ElementsAre(1, 9, 10, 11));
  restart_from(11);
  warning_of(12, kNan);
  EXPECT_THAT(there(), ElementsAre(1, 10, 11, 12)) << "of the second restart as of the first";
}

TEST_F(NanInCheckpoints, ARestartFromAGoodOneKnowsWhatWasNanByItsNature) {
  set(b, kNan);
  warning_of(1, 0.5f);
  EXPECT_EQ(restart_from(1), "");
  EXPECT_EQ(warning_of(2, 0.5f), "");
  EXPECT_EQ(restart_from(2), "");
  EXPECT_THAT(warning_of(3, kNan), AllOf(HasSubstr("did not have, in a."), HasSubstr("without them is " + at(2))))
      << "the first save of a run is compared with what it was restored from";
}

TEST_F(NanInCheckpoints, ACheckpointThatSaysNothingOfItIsTheBeginning) {
  set(a, kNan);
  saver->save(*session, path, 1, {.write_meta_graph = false});
  EXPECT_EQ(restart_from(1), "");
  EXPECT_EQ(warning_of(2, kNan), "");
}

TEST_F(NanInCheckpoints, WhatIsSavedElsewhereIsNotTheLastOneWithout) {
  warning_of(1, 0.5f);
  saver->save(*session, directory.file("export"), {}, {.write_state = false});
  EXPECT_THAT(warning_of(2, kNan), HasSubstr("The last checkpoint without them is " + at(1)));
  saver->save(*session, directory.file("export"), {}, {.write_state = false});
  for (int n = 3; n < 7; ++n) EXPECT_EQ(warning_of(n, kNan), "");
  EXPECT_THAT(there(), ElementsAre(1, 4, 5, 6));
}

TEST_F(NanInCheckpoints, OneThatIsReplacedIsNoLongerTheLastOneWithout) {
  for (int n = 1; n <= 2; ++n) warning_of(n, 0.5f);
  EXPECT_THAT(warning_of(2, kNan), HasSubstr("The last checkpoint without them is " + at(1)));
  for (int n = 3; n < 7; ++n) EXPECT_EQ(warning_of(n, kNan), "");
  EXPECT_THAT(there(), ElementsAre(1, 4, 5, 6));
  EXPECT_THAT(restart_from(6), HasSubstr("The last checkpoint without them is " + at(1)));
}

TEST_F(NanInCheckpoints, WhereTheOnlyOneIsReplacedThereIsNone) {
  warning_of(1, 0.5f);
  EXPECT_THAT(warning_of(1, kNan), HasSubstr("There is no checkpoint without them"));
  EXPECT_THAT(restart_from(1), HasSubstr("There is no checkpoint without them"));
}

TEST_F(NanInCheckpoints, ARestartSaysWhereTheLastOneWithoutIsNotThere) {
  warning_of(1, 0.5f);
  warning_of(2, kNan);
  for (const std::string& file : {index_path(at(1)), data_path(at(1), 0, 1)}) files.remove(file);
  EXPECT_THAT(restart_from(2),
              HasSubstr("The last checkpoint without them was " + at(1) + ", which no longer exists here"));
}

TEST_F(NanInCheckpoints, OfManyNamesFiveAreSaid) {
  std::vector<Variable> many;
  for (int i = 0; i < 8; ++i) {
    many.push_back(ops::variable(root, "w" + std::to_string(i), Tensor::scalar(1.0f)));
    session->run(many.back().initializer());
  }
  saver = std::make_unique<Saver>(options);
  warning_of(1, 0.5f);
  for (const Variable& variable : many) set(variable, kNan);
  EXPECT_THAT(warning_of(2, 0.5f), HasSubstr("in w0, w1, w2, w3, w4 and 3 more."));
}

}  // namespace
}  // namespace longhaul
