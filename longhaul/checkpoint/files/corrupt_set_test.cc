#include "longhaul/checkpoint/files/corrupt_set.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CorruptSet : public ::testing::Test {
 protected:
  // Each one a minute younger than the one before.
  std::string save(const std::string& name, float value = 1) {
    const std::string prefix = directory_.file(name);
    BundleWriter writer(files_, prefix, 2);
    writer.add("v", Tensor::scalar(value));
    writer.finish_data();
    write_file_atomically(files_, prefix + ".meta", "meta");
    writer.commit();
    clock_ += std::chrono::minutes(1);
    std::filesystem::last_write_time(index_path(prefix), clock_);
    return prefix;
  }
  std::vector<std::string> names(const std::string& start) {
    auto names = files_.list(directory_.path());
    std::erase_if(names, [&](const std::string& name) { return !name.starts_with(start); });
    return names;
  }
  std::vector<std::string> candidates() { return checkpoint_candidates(files_, directory_.path()); }

  testing::FaultyFileSystem files_;
  testing::TemporaryDirectory directory_;
  std::filesystem::file_time_type clock_ = std::filesystem::file_time_type::clock::now() - std::chrono::hours(9);
};

TEST_F(CorruptSet, IsNoCheckpointForAnybody) {
  const std::string good = save("m-1"), bad = save("m-2");
  EXPECT_EQ(mark_corrupt(files_, bad), bad + ".index.corrupt");
  EXPECT_THAT(names("m-2"), ElementsAre("m-2.data-00000-of-00002.corrupt", "m-2.data-00001-of-00002.corrupt",
                                        "m-2.index.corrupt", "m-2.meta.corrupt"));
  EXPECT_FALSE(checkpoint_exists(files_, bad));
  EXPECT_THAT(candidates(), ElementsAre(good));
  EXPECT_THROW(BundleReader(files_, bad), NotFoundError);
  EXPECT_THAT(find_checkpoints(files_, directory_.path(), ""), SizeIs(1));
}

TEST_F(CorruptSet, WhatWasSetAsideCanBeMarkedToo) {
  const std::string prefix = save("m-1");
  set_aside(files_, prefix);
  EXPECT_EQ(mark_corrupt(files_, prefix), prefix + ".aside.index.corrupt");
  EXPECT_FALSE(checkpoint_exists(files_, prefix));
}

TEST_F(CorruptSet, WhatHasLostItsIndexIsRenamedAndStaysForItsIndexMayComeBack) {
  const std::string prefix = save("m-1");
  files_.remove(index_path(prefix));
  EXPECT_EQ(mark_corrupt(files_, prefix), data_path(prefix, 0, 2) + ".corrupt");
  const std::vector<std::string> marked{"m-1.data-00000-of-00002.corrupt", "m-1.data-00001-of-00002.corrupt",
                                        "m-1.meta.corrupt"};
  EXPECT_EQ(names("m-1"), marked);
  complete_corrupt_sets(files_, directory_.path());
  remove_corrupt_sets(files_, directory_.path(), 0);
  EXPECT_EQ(names("m-1"), marked);
}

TEST_F(CorruptSet, WhatIsNotThereCannotBeMarked) {
  EXPECT_THROW(mark_corrupt(files_, directory_.file("m-1")), NotFoundError);
}

TEST_F(CorruptSet, ACrashAtAnyRenameLeavesTheOldNameOrNoCheckpoint) {
  save("m-9");
  const size_t saved = files_.operations().size();
  mark_corrupt(files_, directory_.file("m-9"));
  const int steps = static_cast<int>(files_.operations().size() - saved);
  for (int n = 0; n < steps; ++n) {
    const std::string prefix = save("m-" + std::to_string(10 + n));
    files_.fail_operation(n, testing::FaultyFileSystem::Fault::kForGood);
    EXPECT_THROW(mark_corrupt(files_, prefix), UnavailableError) << n;
    files_.heal();
    EXPECT_EQ(checkpoint_exists(files_, prefix), n == 0) << n;
    complete_corrupt_sets(files_, directory_.path());
    const auto all = names(base_name(prefix) + ".");
    const auto marked =
        std::count_if(all.begin(), all.end(), [](const auto& name) { return name.ends_with(".corrupt"); });
    EXPECT_EQ(marked, n == 0 ? 0 : 4) << n;
    EXPECT_THAT(all, SizeIs(4)) << n;
  }
}

TEST_F(CorruptSet, WhatWasSavedAgainUnderTheNameIsNotTouched) {
  const std::string prefix = save("m-1");
  mark_corrupt(files_, prefix);
  save("m-1", 7);
  complete_corrupt_sets(files_, directory_.path());
  remove_corrupt_sets(files_, directory_.path(), 0);
  EXPECT_EQ(BundleReader(files_, prefix).read("v").item<float>(), 7);
  EXPECT_THAT(names("m-1"), SizeIs(4));
}

TEST_F(CorruptSet, WhatASaveThatDidNotEndLeftReplacesNothingOfASet) {
  const std::string prefix = save("m-1"), data = data_path(prefix, 0, 2);
  mark_corrupt(files_, prefix);
  const std::string marked = read_file(files_, data + ".corrupt");
  write_file_atomically(files_, data, "of a save that was killed");
  complete_corrupt_sets(files_, directory_.path());
  EXPECT_EQ(read_file(files_, data + ".corrupt"), marked);
  EXPECT_TRUE(files_.exists(data));
}

TEST_F(CorruptSet, ASecondOneOfANameReplacesTheFirstWhole) {
  const std::string prefix = save("m-1");
  mark_corrupt(files_, prefix);
  {
    BundleWriter writer(files_, prefix);  // with one data file
    writer.add("v", Tensor::scalar(2.0f));
    writer.finish();
  }
  mark_corrupt(files_, prefix);
  EXPECT_THAT(names("m-1"), ElementsAre("m-1.data-00000-of-00001.corrupt", "m-1.index.corrupt"));
}

TEST_F(CorruptSet, OfACheckpointAndOneSetAsideEachHasItsOwn) {
  const std::string prefix = save("m-1");
  set_aside(files_, prefix);
  mark_corrupt(files_, prefix);
  mark_corrupt(files_, save("m-1"));
  EXPECT_THAT(corrupt_sets(files_, directory_.path()), ElementsAre(prefix + ".aside", prefix));
  EXPECT_THAT(names("m-1.aside."), SizeIs(4));
}

TEST_F(CorruptSet, TheNewestOfThemStay) {
  for (const char* name : {"m-30", "m-4", "m-200"}) mark_corrupt(files_, save(name));
  const std::string whole = save("m-300");
  EXPECT_THAT(corrupt_sets(files_, directory_.path()),
              ElementsAre(directory_.file("m-30"), directory_.file("m-4"), directory_.file("m-200")));
  remove_corrupt_sets(files_, directory_.path(), kCorruptSetsKept);
  EXPECT_THAT(names("m-30."), IsEmpty());
  EXPECT_THAT(names("m-4"), SizeIs(4));
  remove_corrupt_sets(files_, directory_.path(), 0);
  EXPECT_THAT(names("m-200"), IsEmpty());
  EXPECT_TRUE(checkpoint_exists(files_, whole));
}

TEST_F(CorruptSet, ADirectoryThatIsNotThereHasNone) {
  EXPECT_THAT(corrupt_sets(files_, directory_.file("missing")), IsEmpty());
}

}  // namespace
}  // namespace longhaul
