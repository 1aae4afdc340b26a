#include "longhaul/checkpoint/directory/named_checkpoints.h"

#include <gmock/gmock.h>

#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NamedCheckpointsTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }
  void put(const std::vector<std::string>& names) {
    for (const std::string& name : names) files_.create(path(name))->close();
  }
  void name(const std::vector<std::string>& paths, const std::vector<std::string>& marked = {}) {
    write_checkpoint_state(files_, directory_.path(),
                           {.model_checkpoint_path = paths.back(),
                            .all_model_checkpoint_paths = paths,
                            .paths_marked_for_deletion = marked});
  }
  std::vector<std::string> without_index() { return checkpoints_without_index(files_, directory_.path()); }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
};

TEST_F(NamedCheckpointsTest, AreThoseOfTheStateAndOfTheRetentionFile) {
  name({path("m-1"), "m-2", "/elsewhere/m-3"}, {path("m-4"), path("m-2"), path("m-5")});
  write_retention(files_, directory_.path(),
                  {{path("m-5"), {.pinned = true, .fallen_out = true}},
                   {path("m-6"), {.metric = 1.0, .fallen_out = true}},
                   {path("m-7"), {.fallen_out = true}}});
  const NamedCheckpoints named = named_checkpoints(files_, directory_.path());
  EXPECT_THAT(named.kept, ElementsAre("m-1", "m-2", "m-3", "m-5", "m-6"));
  EXPECT_THAT(named.marked_for_deletion, ElementsAre("m-4", "m-7"));
  EXPECT_THAT(named.elsewhere, ElementsAre("/elsewhere/m-3"));
}

TEST_F(NamedCheckpointsTest, WhereThereAreNoFilesNothingIsNamed) {
  EXPECT_THAT(named_checkpoints(files_, directory_.path()).kept, IsEmpty());
  EXPECT_THAT(checkpoints_without_index(files_, path("none")), IsEmpty());
}

TEST_F(NamedCheckpointsTest, OneWhoseIndexIsLostIsFound) {
  put({"m-1.data-00000-of-00002", "m-2.data-00000-of-00001", "m-2.index", "m-3.meta", "m-4.data-00000-of-00001",
       "m-4.aside.data-00000-of-00001", "m-4.aside.index", "m-5.data-00000-of-00001", "m-5.index.corrupt",
       "m-6.data-00000-of-00001", "m-7.data-00000-of-00001"});
  name({path("m-1"), path("m-2"), path("m-3"), path("m-4"), path("m-5")}, {path("m-6")});
  EXPECT_THAT(without_index(), ElementsAre(path("m-1")))
      << "2 is whole, of 3 there is nothing, 4 lies aside, 5 is marked, 6 is being deleted, 7 is not named";
}

TEST_F(NamedCheckpointsTest, InACopiedDirectoryItIsThatOfTheCopyThatIsLost) {
  put({"m-1.data-00000-of-00001"});
  name({"/elsewhere/m-1"});
  EXPECT_THAT(without_index(), ElementsAre(path("m-1")));
}

TEST_F(NamedCheckpointsTest, OneInAnotherDirectoryIsFoundThere) {
  const testing::TemporaryDirectory other;
  files_.create(other.file("m-1.data-00000-of-00001"))->close();
  name({other.file("m-1")});
  EXPECT_THAT(without_index(), ElementsAre(other.file("m-1")));
}

}  // namespace
}  // namespace longhaul
