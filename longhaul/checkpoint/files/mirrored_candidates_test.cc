#include <gmock/gmock.h>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MirroredCandidates : public ::testing::Test {
 protected:
  void save(const testing::TemporaryDirectory& directory, std::initializer_list<int> steps) {
    CheckpointState state;
    for (const int step : steps) {
      BundleWriter writer(files_, directory.file(fmt::format("m-{}", step)));
      writer.add("v", Tensor::scalar(1.0f));
      writer.finish();
      state.all_model_checkpoint_paths.push_back(fmt::format("m-{}", step));
    }
    state.model_checkpoint_path = state.all_model_checkpoint_paths.back();
    write_checkpoint_state(files_, directory.path(), state, /*relative_paths=*/true);
  }
  // "p3": that of step 3 in the directory; "m3": in the mirror.
  std::vector<std::string> candidates() {
    std::vector<std::string> names;
    for (const std::string& prefix : mirrored_candidates(files_, own_.path(), mirror_.path(), "m")) {
      names.push_back((directory_name(prefix) == own_.path() ? "p" : "m") + base_name(prefix).substr(2));
    }
    return names;
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory own_, mirror_;
};

TEST_F(MirroredCandidates, TheLaterStepComesFirstAndTheDirectoryBeforeItsMirror) {
  save(own_, {1, 3, 4});
  save(mirror_, {2, 3, 5});
  EXPECT_THAT(candidates(), ElementsAre("m5", "p4", "p3", "m3", "m2", "p1"));
}

TEST_F(MirroredCandidates, AnEmptyDirectoryHasThoseOfItsMirror) {
  save(mirror_, {2, 3});
  EXPECT_THAT(candidates(), ElementsAre("m3", "m2"));
}

TEST_F(MirroredCandidates, AMirrorThatIsNotThereYetHasNone) {
  save(own_, {1});
  EXPECT_THAT(mirrored_candidates(files_, own_.path(), mirror_.file("none"), "m"), ElementsAre(own_.file("m-1")));
  EXPECT_THAT(mirrored_candidates(files_, own_.file("none"), mirror_.file("none"), "m"), IsEmpty());
}

TEST_F(MirroredCandidates, AStateFileThatWasEditedToGoBackWinsOverTheMirror) {
  save(own_, {1, 2});
  save(mirror_, {1, 2, 3});
  write_checkpoint_state(files_, own_.path(), {.model_checkpoint_path = "m-1"});
  EXPECT_THAT(candidates(), ElementsAre("p1", "p2", "m3", "m2", "m1"));
}

TEST_F(MirroredCandidates, ATrainingThatWentBackAndOnIsNotTakenForwardByItsMirror) {
  save(own_, {2});
  save(mirror_, {1, 3, 2});
  EXPECT_THAT(candidates(), ElementsAre("p2", "m2", "m3", "m1"));
}

TEST_F(MirroredCandidates, AStateFileOfTheMirrorThatWasCopiedNamesNoOthers) {
  save(own_, {1});
  save(mirror_, {2});
  write_checkpoint_state(files_, mirror_.path(), {.model_checkpoint_path = own_.file("m-1")});
  EXPECT_THAT(candidates(), ElementsAre("m2", "p1"));
}

}  // namespace
}  // namespace longhaul
