// The power is cut at every single operation on the disk while a checkpoint is copied to a mirror, the mirror's state
// file is replaced and its oldest checkpoint deleted: the mirror always has a whole one, at least the last that it was
// said to have, and the next copy leaves what it should have, and no debris.
#include <thread>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"
#include "tests/power_cut_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

const std::string kMirror = "/other_disk/run";

// With renames, and in place.
class PowerCutInAMirror : public PowerCutTest, public ::testing::WithParamInterface<bool> {
 protected:
  static std::string own(int step) { return fmt::format("{}/model-{}", kRun, step); }
  static std::string mirrored(int step) { return fmt::format("{}/model-{}", kMirror, step); }

  void write(FileSystem& files, int step) {
    BundleWriter writer(files, own(step));
    writer.add("step", Tensor::scalar<int64_t>(step));
    writer.add("values", Tensor::of(Shape({500}), std::vector<float>(500, static_cast<float>(step))));
    writer.add_file(meta_graph_filename(own(step)), "the graph");
    writer.finish();
  }
  // Tries to mirror the checkpoint, once; a failure is left to who looks at the disk.
  void mirror(FileSystem& files, int step) {
    testing::FakeClock clock;
    CheckpointMirror mirror(kRun,
                            {.directory = kMirror,
                             .max_to_keep = 2,
                             .end_timeout = Seconds{0},
                             .renames = GetParam(),
                             .lock = {.with_flock = false}},
                            files, clock);
    mirror.add(own(step));
    const auto is_done = [](const SaveStatus& status) {
      return !status.last_prefix.empty() || status.consecutive_failures > 0;
    };
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!is_done(mirror.status()) && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(is_done(mirror.status()));
    if (!mirror.status().last_prefix.empty()) committed_ = step;
  }
  void write_and_mirror(FileSystem& files, int step) {
    write(files, step);
    mirror(files, step);
  }

  void expect_newest(Disk& disk) {
    const IntactCheckpoint found = newest_intact_checkpoint(disk, kMirror, "model");
    ASSERT_TRUE(found.prefix);
    const BundleReader reader(disk, *found.prefix);
    EXPECT_GE(reader.read("step").item<int64_t>(), *committed_);
    EXPECT_EQ(split_step(*found.prefix).step, reader.read("step").item<int64_t>());
    EXPECT_TRUE(found.skipped.empty() || !GetParam()) << "after renames, what has an index is whole";
  }
  void expect_to_go_on(Disk& disk) {
    expect_newest(disk);
    const std::optional<int64_t> before = committed_;
    mirror(disk, 30);  // the restart begins with the checkpoint that it is restored from
    write_and_mirror(disk, 40);
    write_and_mirror(disk, 50);
    committed_ = before;
    std::vector<std::string> names = disk.list(kMirror);
    for (const char* other : {".incoming", "chief.owner"}) std::erase(names, other);
    std::vector<std::string> expected{"checkpoint"};
    for (const char* name : {"model-40", "model-50"}) {
      expected.insert(expected.end(), {data_path(name, 0, 1), index_path(name), meta_graph_filename(name)});
    }
    if (!GetParam()) {
      // Half of a list that was written in place may leave out an old checkpoint, which then stays.
      EXPECT_THAT(names, IsSupersetOf(expected));
      return;
    }
    EXPECT_THAT(names, ElementsAreArray(expected));
    EXPECT_THAT(disk.list(kMirror + "/.incoming"), IsEmpty());
  }
};

INSTANTIATE_TEST_SUITE_P(RenamesAndInPlace, PowerCutInAMirror, ::testing::Bool());

TEST_P(PowerCutInAMirror, ACopyLeavesTheNewestThatWasMirroredAndNoDebris) {
  cut_everywhere(
      [&](Machine& machine) {
        for (const int step : {10, 20}) write_and_mirror(machine, step);
        write(machine, 30);
      },
      [&](Machine& machine) { mirror(machine, 30); }, [&](Disk& disk) { expect_to_go_on(disk); });
  EXPECT_GT(operations_, 20);
}

// As the training that was restored and made the same step anew does.
TEST_P(PowerCutInAMirror, ACopyOverAnotherOfItsNameLeavesAWholeOne) {
  cut_everywhere(
      [&](Machine& machine) {
        for (const int step : {20, 30}) write_and_mirror(machine, step);
        committed_ = 20;
        BundleWriter again(machine, own(30));
        again.add("step", Tensor::scalar<int64_t>(30));
        again.finish();
      },
      [&](Machine& machine) { mirror(machine, 30); }, [&](Disk& disk) { expect_to_go_on(disk); });
}

}  // namespace
}  // namespace longhaul
