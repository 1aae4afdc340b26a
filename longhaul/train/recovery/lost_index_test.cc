#include <filesystem>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/train/recovery/fall_back_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LostIndexTest : public FallBackTest {
 protected:
  void lose_index(const std::string& prefix) { std::filesystem::remove(index_path(prefix)); }
  std::vector<std::string> names() { return FileSystem::real().list(directory.path()); }
};

TEST_F(LostIndexTest, WhereAllAreLostTheStartIsAnErrorThatNamesThemAndNothingIsRemoved) {
  for (const std::string& prefix : prefixes) lose_index(prefix);
  for (const bool is_locked : {false, true}) {
    if (is_locked) lock();
    const auto before = names();
    EXPECT_THAT(error_of([&] { restored(); }),
                AllOf(HasSubstr(index_path(prefixes[0])), HasSubstr(index_path(prefixes[2])),
                      HasSubstr("Bring the index files")));
    EXPECT_THROW(manager().prepare_session(prepare), DataLossError);
    EXPECT_EQ(names(), before);
  }
}

TEST_F(LostIndexTest, WhereTheNewestIsLostTheOneBeforeIsRestoredAndTheDataKeptAside) {
  lock();
  lose_index(prefixes[2]);
  const LogRecorder log;
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("its index " + index_path(prefixes[2]) + " is missing"));
  const std::string aside = data_path(prefixes[2], 0, 1) + ".corrupt";
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("is renamed to " + aside));
  restart();
  EXPECT_EQ(restored(), 2);
  remove_corrupt_sets(FileSystem::real(), directory.path(), 0);
  EXPECT_TRUE(std::filesystem::exists(aside)) << "its index may come back";
}

TEST_F(LostIndexTest, WhoHasNotLockedTheDirectoryLeavesTheDataWhereItIs) {
  lose_index(prefixes[2]);
  EXPECT_EQ(restored(), 2);
  EXPECT_TRUE(std::filesystem::exists(data_path(prefixes[2], 0, 1)));
}

TEST_F(LostIndexTest, OneThatOnlyTheFileOfPinsNamesIsLostToo) {
  saver.pin(prefixes[0]);
  for (const std::string& prefix : prefixes) lose_index(prefix);
  std::filesystem::remove(directory.file("checkpoint"));
  EXPECT_THAT(error_of([&] { restored(); }),
              AllOf(HasSubstr(index_path(prefixes[0])), Not(HasSubstr(index_path(prefixes[1])))));
}

TEST_F(LostIndexTest, DataThatNobodyNamesIsKeptWithAWarning) {
  lock();
  std::filesystem::remove(directory.file("checkpoint"));
  lose_index(prefixes[2]);
  const LogRecorder log;
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("model-3.data-00000-of-00001"));
  EXPECT_TRUE(std::filesystem::exists(data_path(prefixes[2], 0, 1)));
}

TEST_F(LostIndexTest, WhereTheStateFileIsLostAsWellTrainingDoesNotStartAfresh) {
  std::filesystem::remove(directory.file("checkpoint"));
  for (const std::string& prefix : prefixes) lose_index(prefix);
  for (const bool is_locked : {false, true}) {
    if (is_locked) lock();
    EXPECT_THAT(error_of([&] { restored(); }),
                AllOf(HasSubstr("whose index files are missing"), HasSubstr("model-3.data-00000-of-00001")));
    EXPECT_THROW(manager().prepare_session(prepare), DataLossError);
    EXPECT_TRUE(std::filesystem::exists(data_path(prefixes[0], 0, 1)));
  }
}

// What lies under its name as damaged, of an earlier save: all of it, or what there was without the data.
class EarlierDamage : public LostIndexTest, public ::testing::WithParamInterface<bool> {};

TEST_P(EarlierDamage, OfTheSameNameHidesNothing) {
  lock();
  lose_index(prefixes[2]);
  const std::string index = index_path(prefixes[2]), data = data_path(prefixes[2], 0, 1);
  for (const std::string& path : {index, GetParam() ? data : meta_graph_filename(prefixes[2])}) {
    write_file_atomically(FileSystem::real(), path + ".corrupt", "of an earlier save");
  }
  const std::string lost = read_file(FileSystem::real(), data);
  const LogRecorder log;
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("its index " + index + " is missing"));
  EXPECT_EQ(read_file(FileSystem::real(), data + ".corrupt"), lost);
}

INSTANTIATE_TEST_SUITE_P(WithData, EarlierDamage, ::testing::Bool());

}  // namespace
}  // namespace longhaul
