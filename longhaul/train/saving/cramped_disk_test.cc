// A disk that has room for the checkpoints that are kept, but not for one more beside them.
#include <limits>

#include "longhaul/checkpoint/retention/disk_room.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CrampedDisk : public SaverFixture {
 protected:
  static constexpr size_t kFloats = 1 << 18;  // a checkpoint is of 1 MiB
  static constexpr uint64_t kCheckpoint = kFloats * sizeof(float), kSpare = (1 << 20) + kCheckpoint / 64;

  CrampedDisk() {
    options.files = &disk;
    options.keep_checkpoint_every_n_hours = 0;
    const Tensor large = Tensor::of(std::vector<float>(kFloats, 1));
    const Variable weights = ops::variable(root, "weights", large);
    session->run(weights.initializer());
  }
  // As large as it is for so many checkpoints.
  void shrink_to(double checkpoints) {
    const auto bytes = static_cast<uint64_t>(checkpoints * kCheckpoint) + kSpare;
    disk.room = [this, bytes] { return bytes - std::min(bytes, used()); };
  }
  uint64_t used() {
    uint64_t bytes = 0;
    for (const std::string& name : files.list(directory.path())) {
      if (name.find(".data-") != name.npos) bytes += files.open(directory.file(name))->size();
    }
    return bytes;
  }
  std::string at(int n) const { return path + "-" + std::to_string(n); }
  std::vector<int> there() {
    std::vector<int> steps;
    for (int n = 0; n < 50; ++n) {
      if (exists(at(n))) steps.push_back(n);
    }
    return steps;
  }
  void save(Saver& saver, int n, const SaveOptions& save_options = {}) {
    EXPECT_EQ(saver.save(*session, path, n, save_options), at(n));
  }

  BadDisk disk;
};

TEST_F(CrampedDisk, KeepsTheLastOneWithoutNanAfterARestart) {
  Saver first(options);
  save(first, 1);
  set(a, std::numeric_limits<float>::quiet_NaN());
  save(first, 2);
  save(first, 3);
  Saver restarted(options);
  restarted.restore(*session, at(3));
  restarted.recover_last_checkpoints(state());
  shrink_to(3.5);
  save(restarted, 4);
  EXPECT_THAT(there(), ElementsAre(1, 3, 4));
}

TEST_F(CrampedDisk, GoesOnTakingCheckpoints) {
  shrink_to(3.5);
  Saver saver(options);
  const LogRecorder log;
  for (int n = 0; n < 20; ++n) {
    save(saver, n);
    EXPECT_EQ(state().model_checkpoint_path, at(n));
  }
  EXPECT_THAT(there(), ElementsAre(17, 18, 19));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(at(17), at(18), at(19)));
  EXPECT_THAT(state().all_model_checkpoint_paths, ElementsAre(at(17), at(18), at(19)));
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("there is no room for " + at(3) + ": checkpoint " + at(0) + " is deleted before its turn"));
}

TEST_F(CrampedDisk, GoesOnAfterARestart) {
  auto saver = std::make_unique<Saver>(options);
  for (int n = 0; n < 5; ++n) save(*saver, n);
  shrink_to(5.2);
  saver = std::make_unique<Saver>(options);
  saver->recover_last_checkpoints(state());
  save(*saver, 5);
  EXPECT_THAT(there(), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(CrampedDisk, LosesNoMoreThanItMust) {
  Saver saver(options);
  for (int n = 0; n < 5; ++n) save(saver, n);
  shrink_to(4.2);
  save(saver, 5);
  EXPECT_THAT(there(), ElementsAre(2, 3, 4, 5));
}

TEST_F(CrampedDisk, KeepsTheNewestWhateverIsRefused) {
  Saver saver(options);
  for (int n = 0; n < 3; ++n) save(saver, n);
  shrink_to(1.5);
  EXPECT_THAT(error_of([&] { save(saver, 3); }), HasSubstr("nothing was written. Make room"));
  EXPECT_THAT(there(), ElementsAre(0, 1, 2)) << "nothing is deleted in vain";
  shrink_to(2.5);
  save(saver, 3);
  EXPECT_THAT(there(), ElementsAre(2, 3));
}

TEST_F(CrampedDisk, KeepsTheNewestThatIsWhole) {
  Saver saver(options);
  for (int n = 0; n < 4; ++n) save(saver, n);
  for (const int damaged : {2, 3}) flip_a_bit(at(damaged) + ".data-00000-of-00001");
  disk.room = [&] { return exists(at(1)) ? kSpare + kCheckpoint / 2 : 10 * kCheckpoint; };
  EXPECT_THROW(save(saver, 4), ResourceExhaustedError);
  EXPECT_THAT(there(), ElementsAre(1, 2, 3));
}

TEST_F(CrampedDisk, KeepsWhatIsPinnedOneOfTheBestOrPreserved) {
  options.best.top_k = 1;
  options.keep_checkpoint_every_n_hours = 1;
  Saver saver(options);
  for (int n = 0; n < 5; ++n) {
    save(saver, n, {.metric = n == 1 ? 0.1 : 0.9});
    clock.advance(Seconds{1500});
  }
  saver.pin(at(0));
  shrink_to(5.2);
  save(saver, 5);
  EXPECT_THAT(there(), ElementsAre(0, 1, 3, 4, 5)) << "2 was saved after 50 minutes, 3 after 75";
}

TEST_F(CrampedDisk, ThatIsFullWhileItIsWrittenToIsDealtWithAlike) {
  Saver saver(options);
  for (int n = 0; n < 3; ++n) save(saver, n);
  disk.fail_writes_after(100);  // though it said that there was room
  disk.before_remove = [&](const std::string& removed) {
    if (base_name(removed) == "model-0.index") disk.heal();
  };
  save(saver, 3);
  EXPECT_THAT(there(), ElementsAre(1, 2, 3));
  EXPECT_THAT(BundleReader(files, at(3)).verify(), IsEmpty());
}

TEST_F(CrampedDisk, ThatStaysFullCostsNoMoreThanOneSaveTakes) {
  Saver saver(options);
  for (int n = 0; n < 4; ++n) save(saver, n);
  disk.fail_writes_after(0);
  const LogRecorder log;
  for (int again = 0; again < 3; ++again) {
    EXPECT_THAT(error_of([&] { save(saver, 4 + again); }), HasSubstr("No space left"));
    EXPECT_THAT(there(), ElementsAre(1, 2, 3));
  }
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("so no more are deleted. Free bytes or inodes"));
  disk.heal();
  save(saver, 7);
  EXPECT_THAT(there(), ElementsAre(1, 2, 3, 7));
  disk.fail_writes_after(0);
  EXPECT_THROW(save(saver, 8), ResourceExhaustedError);
  EXPECT_THAT(there(), ElementsAre(2, 3, 7)) << "since then one came through";
}

TEST_F(CrampedDisk, ThatAnotherProgramFillsCostsNoMoreThanOneSaveTakes) {
  Saver saver(options);
  for (int n = 0; n < 4; ++n) save(saver, n);
  bool is_filled = true;
  disk.before_remove = [&](const std::string& removed) { is_filled = is_filled && !removed.ends_with(".index"); };
  disk.room = [&] { return std::exchange(is_filled, true) ? kSpare : 10 * kCheckpoint; };
  disk.fail_writes_after(0);
  for (int n = 4; n < 7; ++n) {
    EXPECT_THROW(save(saver, n), ResourceExhaustedError);
    EXPECT_THAT(there(), ElementsAre(1, 2, 3));
  }
}

// A disk with bytes enough, on which no more than so many files can be.
class DiskOfFewFiles : public BadDisk {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    check_inodes(path);
    return BadDisk::create(path, if_exists);
  }
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& large) override {
    check_inodes(path);
    return BadDisk::create_large(path, large);
  }
  void take_all_inodes_in(const std::string& directory) { most_ = list(directory).size(); }
  std::string refused = "";  // whose name begins so, whatever is free

 private:
  void check_inodes(const std::string& path) {
    const bool is_refused = !refused.empty() && base_name(path).starts_with(refused);
    if (!is_refused && list(directory_name(path)).size() < most_) return;
    throw ResourceExhaustedError("create " + path + ": No space left on device");
  }
  size_t most_ = SIZE_MAX;
};

class DiskWithoutInodes : public CrampedDisk {
 protected:
  DiskWithoutInodes() { options.files = &few; }
  DiskOfFewFiles few;
};

TEST_F(DiskWithoutInodes, GoesOnTakingCheckpointsAndListsThem) {
  Saver saver(options);
  for (int n = 0; n < 4; ++n) save(saver, n);
  few.take_all_inodes_in(directory.path());
  for (int n = 4; n < 9; ++n) {
    save(saver, n);
    EXPECT_EQ(state().model_checkpoint_path, at(n));
  }
  EXPECT_THAT(there(), ElementsAre(6, 7, 8));
}

TEST_F(DiskWithoutInodes, WhereTheListCannotBeWrittenNoMoreThanOneCheckpointGoes) {
  Saver saver(options);
  for (int n = 0; n < 3; ++n) save(saver, n);
  few.refused = "checkpoint.";
  for (int n = 3; n < 6; ++n) EXPECT_THROW(save(saver, n), ResourceExhaustedError);
  EXPECT_THAT(there(), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(CrampedDisk, IsNotWhatOtherShortagesAreTakenFor) {
  Saver saver(options);
  for (int n = 0; n < 3; ++n) save(saver, n);
  disk.before_rename = [](const std::string&, const std::string&) {
    throw ResourceExhaustedError("rename: Too many open files");
  };
  EXPECT_THROW(save(saver, 3), ResourceExhaustedError);
  EXPECT_THAT(there(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(is_disk_full(ResourceExhaustedError("write: Disk quota exceeded")));
  EXPECT_FALSE(is_disk_full(DataLossError("write: No space left on device")));
}

TEST_F(CrampedDisk, IsNoReasonToDeleteElsewhere) {
  Saver saver(options);
  const testing::TemporaryDirectory other_disk;
  for (int n = 0; n < 2; ++n) saver.save(*session, other_disk.file("model"), n);
  save(saver, 2);
  disk.room = [] { return 0; };
  EXPECT_THROW(save(saver, 3), ResourceExhaustedError);
  EXPECT_TRUE(checkpoint_exists(files, other_disk.file("model-0")));
  EXPECT_THAT(there(), ElementsAre(2));
}

}  // namespace
}  // namespace longhaul
