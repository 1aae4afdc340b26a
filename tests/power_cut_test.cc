// The power is cut at every single operation on the disk, and the disk is left in the extremes of what may be, and in a
// sample of the rest: a restart always finds the newest checkpoint that was committed, whole, and no debris stays.
#include "longhaul/checkpoint/bundle/bundle_merge.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "tests/power_cut_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Optional;

// The files of a directory with these checkpoints in it, and nothing else.
std::vector<std::string> files_of(const std::vector<std::string>& checkpoints, int num_shards) {
  std::vector<std::string> names{"checkpoint", "checkpoint.retention", "run.journal"};
  for (const std::string& checkpoint : checkpoints) {
    names.insert(names.end(), {index_path(checkpoint), meta_graph_filename(checkpoint)});
    for (int i = 0; i < num_shards; ++i) names.push_back(data_path(checkpoint, i, num_shards));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A training with a checkpoint that is pinned, and two that are not.
class PowerCutInATraining : public PowerCutTest, public ::testing::WithParamInterface<bool> {
 protected:
  static bool is_sharded() { return GetParam(); }

  void train_to_30(FileSystem& files) {
    DoomedTraining training(files, is_sharded());
    for (const int64_t step : {10, 20, 30}) {
      training.save_at(step);
      if (step == 10) training.saver().pin(kRun + "/model-10");
    }
    committed_ = 30;
  }

  // What was committed is there, or what came after it; the values are those of that step.
  void expect_newest(DoomedTraining& training) const {
    ASSERT_TRUE(training.restored()) << log_.text();
    EXPECT_GE(*training.restored(), committed_) << log_.text();
    EXPECT_TRUE(training.has_values_of(*training.restored()));
  }

  // It goes on from the newest, and saves as if nothing had been; so does the one after it.
  void expect_to_go_on(Disk& disk) const {
    {
      DoomedTraining training(disk, is_sharded());
      expect_newest(training);
      training.save_at(50);
    }
    DoomedTraining training(disk, is_sharded());
    EXPECT_THAT(training.restored(), Optional(50));
    training.save_at(60);
    std::vector<std::string> names = disk.list(kRun);
    std::erase(names, "chief.owner");
    EXPECT_THAT(names, ElementsAreArray(files_of({"model-10", "model-50", "model-60"}, is_sharded() ? 3 : 1)));
  }

  void save_at_40(Machine& machine) {
    DoomedTraining training(machine, is_sharded());
    training.save_at(40);
    committed_ = 40;
  }
};

INSTANTIATE_TEST_SUITE_P(OneFileAndShards, PowerCutInATraining, ::testing::Bool());

TEST_P(PowerCutInATraining, ASaveLeavesTheNewestThatWasCommittedAndNoDebris) {
  cut_everywhere([&](Machine& machine) { train_to_30(machine); }, [&](Machine& machine) { save_at_40(machine); },
                 [&](Disk& disk) { expect_to_go_on(disk); });
  EXPECT_EQ(operations_, is_sharded() ? 80 : 70) << "docs/reliability.md has this number, too";
}

TEST_P(PowerCutInATraining, AFirstSaveLeavesNothingOrACheckpoint) {
  const auto save = [&](Machine& machine) {
    DoomedTraining training(machine, is_sharded());
    training.save_at(10);
    committed_ = 10;
  };
  cut_everywhere([](Machine&) {}, save,
                 [&](Disk& disk) {
                   DoomedTraining training(disk, is_sharded());
                   EXPECT_TRUE(training.restored() || !committed_);
                   EXPECT_TRUE(!training.restored() || training.has_values_of(10));
                   training.save_at(20);
                   EXPECT_TRUE(checkpoint_exists(disk, kRun + "/model-20"));
                 });
}

TEST_P(PowerCutInATraining, ACutWhileItRecoversFromACutIsNoWorse) {
  const auto cut_once = [&](Machine& machine) {
    train_to_30(machine);
    machine.fail_operation(40, Machine::Fault::kForGood);
    try {
      save_at_40(machine);
    } catch (const Error&) {
    }
    machine.heal();
  };
  cut_everywhere(
      cut_once, [&](Machine& machine) { DoomedTraining restarted(machine, is_sharded()); },
      [&](Disk& disk) { expect_to_go_on(disk); });
}

// One whose checkpoints all have the same name.
TEST_P(PowerCutInATraining, ACheckpointThatIsReplacedIsTheOldOrTheNewOne) {
  const auto save_in_place = [&](Machine& machine, int64_t step) {
    DoomedTraining training(machine, is_sharded());
    training.go_to(step);
    training.save_in_place();
    committed_ = step;
  };
  cut_everywhere([&](Machine& machine) { save_in_place(machine, 1); },
                 [&](Machine& machine) { save_in_place(machine, 2); },
                 [&](Disk& disk) {
                   DoomedTraining training(disk, is_sharded());
                   expect_newest(training);
                   training.go_to(3);
                   training.save_in_place();
                   EXPECT_TRUE(checkpoint_exists(disk, kRun + "/model"));
                   EXPECT_FALSE(disk.exists(kRun + "/model.aside.index"));
                 });
}

TEST_P(PowerCutInATraining, APinIsThereOrNotAndTheOthersStay) {
  const auto pin_20 = [&](Machine& machine) {
    DoomedTraining training(machine, is_sharded());
    training.saver().pin(kRun + "/model-20");
    committed_ = 31;
  };
  cut_everywhere([&](Machine& machine) { train_to_30(machine); }, pin_20,
                 [&](Disk& disk) {
                   DoomedTraining training(disk, is_sharded());
                   EXPECT_THAT(training.restored(), Optional(30));
                   const std::vector<std::string> pinned = training.saver().pinned_checkpoints();
                   if (committed_ == 31 || pinned.size() == 2) {
                     EXPECT_THAT(pinned, ElementsAre(kRun + "/model-10", kRun + "/model-20"));
                   } else {
                     EXPECT_THAT(pinned, ElementsAre(kRun + "/model-10"));
                   }
                 });
}

// A machine that says "done" where it has done nothing.
class LyingMachine : public testing::FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  void sync_directory(const std::string&) override {}
};

TEST_P(PowerCutInATraining, ADiskThatLiesAboutSyncsMayLoseTheNewest) {
  bool is_lost = false;
  cut_everywhere<LyingMachine>([&](Machine& machine) { train_to_30(machine); },
                               [&](Machine& machine) { save_at_40(machine); },
                               [&](Disk& disk) {
                                 if (is_lost) return;
                                 try {
                                   DoomedTraining training(disk, is_sharded());
                                   is_lost = training.restored().value_or(0) < committed_;
                                 } catch (const DataLossError&) {
                                   is_lost = true;
                                 }
                               });
  EXPECT_TRUE(is_lost) << "or else the cuts above prove nothing";
}

class PowerCutInAMerge : public PowerCutTest {
 protected:
  static void write(FileSystem& files, const std::string& prefix, const std::string& name, float value) {
    BundleWriter writer(files, prefix);
    writer.add(name, Tensor::scalar(value));
    writer.finish();
  }
  static float value_in(FileSystem& files, const std::string& prefix, const std::string& name) {
    const BundleReader reader(files, prefix);
    EXPECT_THAT(reader.verify(), IsEmpty());
    return reader.read(name).item<float>();
  }
  const std::string whole_ = kRun + "/model", parts_ = kRun + "/model_temp";
};

TEST_F(PowerCutInAMerge, LeavesTheOldCheckpointAndThePartsOrTheNewOne) {
  const std::vector<std::string> parts{parts_ + "/part-0", parts_ + "/part-1"};
  const auto prepare = [&](Machine& machine) {
    write(machine, whole_, "a", 1);
    write(machine, parts[0], "a", 2);
    write(machine, parts[1], "b", 3);
  };
  const auto merge = [&](Machine& machine) {
    merge_bundles(machine, parts, whole_, true);
    committed_ = 1;
  };
  cut_everywhere(prepare, merge, [&](Disk& disk) {
    ASSERT_TRUE(checkpoint_exists(disk, whole_));
    const float a = value_in(disk, whole_, "a");
    if (a == 1 && !committed_) {
      merge_bundles(disk, parts, whole_, true);
    } else {
      EXPECT_EQ(a, 2);
    }
    EXPECT_EQ(value_in(disk, whole_, "a"), 2);
    EXPECT_EQ(value_in(disk, whole_, "b"), 3);
  });
}

}  // namespace
}  // namespace longhaul
