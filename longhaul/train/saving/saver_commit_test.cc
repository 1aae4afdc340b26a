#include <algorithm>
#include <filesystem>

#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/checkpoint/retention/disk_room.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kPlenty = uint64_t{1} << 40;

// What a save does around the writing of its files: the room, the reading back, the deletions.
class CommitProtocol : public SaverFixture {
 protected:
  CommitProtocol() {
    options.files = &disk;
    options.max_to_keep = 1;
  }
  // Each data file has a wrong bit as it gets its name.
  void rot() {
    disk.before_rename = [](const std::string& from, const std::string& to) {
      if (to.find(".data-") != to.npos) flip_a_bit(from);
    };
  }
  void refuse_to_replace(const std::string& name) {
    disk.before_rename = [name](const std::string&, const std::string& to) {
      if (base_name(to) == name) throw DataLossError("rename " + to + ": I/O error");
    };
  }
  int data_files_written() const {
    const auto operations = disk.operations();
    return static_cast<int>(std::count_if(operations.begin(), operations.end(), [](const std::string& operation) {
      return operation.starts_with("create") && operation.find(".data-") != operation.npos;
    }));
  }
  std::vector<std::string> verify(const std::string& prefix) { return BundleReader(files, prefix).verify(); }

  BadDisk disk;
};

TEST_F(CommitProtocol, ASaveForWhichThereIsNoRoomIsRefusedBeforeItsFirstByte) {
  Saver saver(options);
  saver.save(*session, path, 1);
  const size_t before = disk.operations().size();
  disk.room = [] { return 1000; };
  const std::string error = error_of([&] { saver.save(*session, path, 2); });
  EXPECT_THAT(error, AllOf(HasSubstr(path + "-2"), HasSubstr("1000 free"), HasSubstr("nothing was written")));
  EXPECT_THROW(saver.save(*session, path, 2), ResourceExhaustedError);
  const auto operations = disk.operations();
  EXPECT_TRUE(std::none_of(operations.begin() + static_cast<int64_t>(before), operations.end(),
                           [](const std::string& operation) { return operation.starts_with("create"); }));
  EXPECT_EQ(state().model_checkpoint_path, path + "-1");
  EXPECT_THAT(verify(path + "-1"), IsEmpty());
  disk.room = [] { return kPlenty; };
  EXPECT_EQ(saver.save(*session, path, 2), path + "-2");
}

TEST_F(CommitProtocol, TheRoomIsThatOfTheTensorsAndSomethingToSpare) {
  const Tensor numbers(kFloat, Shape({1 << 20}));
  const Dispensable nothing{[] {}, [](uint64_t, const std::function<bool()>&) {}};
  EXPECT_EQ(stored_bytes({numbers, Tensor::scalar(1.0f)}), (4u << 20) + 4);
  EXPECT_GE(stored_bytes({Tensor::scalar<std::string>(std::string(300, 'x'))}), 300u);
  disk.room = [] { return (4 << 20) + (1 << 20); };
  EXPECT_THROW(make_room(disk, path, 4 << 20, nothing), ResourceExhaustedError) << "a 64th of the data is missing";
  disk.room = [] { return (4 << 20) + (1 << 16) + (1 << 20); };
  EXPECT_NO_THROW(make_room(disk, path, 4 << 20, nothing));
}

TEST_F(CommitProtocol, ADiskThatDoesNotTellItsRoomIsWrittenTo) {
  disk.room = []() -> uint64_t { throw UnimplementedError("statvfs"); };
  EXPECT_NO_THROW(Saver(options).save(*session, path, 1));
}

TEST_F(CommitProtocol, WhatNobodyNeedsGoesFirst) {
  Saver saver(options);
  const std::string corrupt = saver.save(*session, path, 1);
  mark_corrupt(files, corrupt);
  saver.save(*session, path, 2);
  const std::string stale = path + "-2.data-00000-of-00001.tempstate99.1";
  write_file_atomically(files, stale, "of a process that died");
  disk.room = [&] { return files.exists(corrupt + ".index.corrupt") || files.exists(stale) ? 0 : kPlenty; };
  EXPECT_NO_THROW(saver.save(*session, path, 3));
  EXPECT_FALSE(files.exists(corrupt + ".data-00000-of-00001.corrupt"));
}

TEST_F(CommitProtocol, OldOnesThatCouldNotBeDeletedGoFirst) {
  for (const bool is_restarted : {false, true}) {
    auto saver = std::make_unique<Saver>(options);
    saver->save(*session, path, 1);
    disk.before_remove = [](const std::string& removed) {
      if (base_name(removed) == "model-1.index") throw UnavailableError("it does not go away");
    };
    saver->save(*session, path, 2);
    disk.before_remove = nullptr;
    ASSERT_TRUE(exists(path + "-1"));
    if (is_restarted) {
      saver = std::make_unique<Saver>(options);
      saver->recover_last_checkpoints(std::vector<std::string>{path + "-2"});
    }
    disk.room = [&] { return exists(path + "-1") ? 0 : kPlenty; };
    EXPECT_NO_THROW(saver->save(*session, path, 3)) << is_restarted;
    disk.room = nullptr;
  }
}

TEST_F(CommitProtocol, TheNewestNeverGoesForWantOfRoom) {
  options.max_to_keep = 2;
  Saver saver(options);
  saver.save(*session, path, 1);
  saver.save(*session, path, 2);
  disk.room = [] { return 0; };
  EXPECT_THROW(saver.save(*session, path, 3), ResourceExhaustedError);
  EXPECT_THAT(verify(path + "-1"), IsEmpty());
  EXPECT_THAT(verify(path + "-2"), IsEmpty());
}

TEST_F(CommitProtocol, NothingIsDeletedForACheckpointThatCannotBeReadBack) {
  Saver saver(options);
  saver.save(*session, path, 1);
  rot();
  const std::string error = error_of([&] { saver.save(*session, path, 2); });
  EXPECT_THAT(error, AllOf(HasSubstr(path + "-2"), HasSubstr("cannot be read back"), HasSubstr("Checksum")));
  EXPECT_FALSE(exists(path + "-2"));
  EXPECT_TRUE(files.exists(path + "-2.index.corrupt"));
  EXPECT_THAT(verify(path + "-1"), IsEmpty());
  EXPECT_EQ(state().model_checkpoint_path, path + "-1");
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(path + "-1"));
  disk.before_rename = nullptr;
  saver.save(*session, path, 2);
  EXPECT_THAT(verify(path + "-2"), IsEmpty());
  EXPECT_FALSE(exists(path + "-1"));
}

TEST_F(CommitProtocol, ACheckpointThatCannotBeReadAtTheMomentIsNotDamaged) {
  for (const Verification verification : {Verification::kBeforeDeletion, Verification::kAlways}) {
    options.verify = verification;
    options.max_to_keep = 1;
    Saver saver(options);
    saver.save(*session, path, 1);
    disk.before_open = [](const std::string& opened) {
      if (opened.find(".data-") != opened.npos) throw ResourceExhaustedError("Too many open files");
    };
    EXPECT_THROW(saver.save(*session, path, 2), ResourceExhaustedError);
    disk.before_open = {};
    EXPECT_THAT(verify(path + "-2"), IsEmpty());
    EXPECT_FALSE(files.exists(path + "-2.index.corrupt"));
    EXPECT_TRUE(checkpoint_exists(files, path + "-1")) << "it is not deleted for one that nobody could read";
    remove_checkpoint(files, path + "-2");
  }
}

TEST_F(CommitProtocol, ReadingBackIsForDeletionsForAllOrForNone) {
  rot();
  options.max_to_keep = 5;
  EXPECT_EQ(Saver(options).save(*session, path, 1), path + "-1") << "nothing is deleted, and nobody has looked";
  options.verify = Verification::kAlways;
  EXPECT_THROW(Saver(options).save(*session, path, 2, {.write_state = false}), DataLossError);
  options.verify = Verification::kNever;
  options.max_to_keep = 1;
  Saver careless(options);
  careless.save(*session, path, 3);
  EXPECT_NO_THROW(careless.save(*session, path, 4));
  EXPECT_FALSE(exists(path + "-3"));
}

TEST_F(CommitProtocol, DamagedOnesDoNotFillTheDisk) {
  Saver saver(options);
  saver.save(*session, path, 1);
  rot();
  for (int n = 2; n < 9; ++n) EXPECT_THROW(saver.save(*session, path, n), DataLossError) << n;
  EXPECT_EQ(corrupt_sets(files, directory.path()).size(), kCorruptSetsKept);
}

TEST_F(CommitProtocol, AStepThatIsCommittedIsNotWrittenAgainForItsStateFile) {
  Saver saver(options);
  const SaveOptions once{.skip_if_saved = true};
  refuse_to_replace("checkpoint");
  EXPECT_THROW(saver.save(*session, path, step, once), DataLossError);
  EXPECT_TRUE(exists(path + "-0"));
  EXPECT_FALSE(saver.last_report()) << "it has failed";
  disk.before_rename = nullptr;
  saver.save(*session, path, step, once);
  EXPECT_EQ(data_files_written(), 1);
  EXPECT_EQ(state().model_checkpoint_path, path + "-0");
  EXPECT_EQ(saver.last_report()->bytes, read_file(files, path + "-0.data-00000-of-00001").size());
  saver.save(*session, path, step);
  EXPECT_EQ(data_files_written(), 2) << "a save without skip_if_saved always writes";
}

TEST_F(CommitProtocol, ACommittedOneThatIsGoneIsWrittenAgain) {
  Saver saver(options);
  const SaveOptions once{.skip_if_saved = true};
  refuse_to_replace("checkpoint");
  EXPECT_THROW(saver.save(*session, path, step, once), DataLossError);
  remove_checkpoint(files, path + "-0");
  disk.before_rename = nullptr;
  saver.save(*session, path, step, once);
  EXPECT_THAT(verify(path + "-0"), IsEmpty());
}

TEST_F(CommitProtocol, ACommittedNameIsNeverOverwrittenInPlace) {
  Saver saver(options);
  saver.save(*session, path, 5);
  int looks = 0;
  disk.before_rename = [&](const std::string&, const std::string&) {
    ++looks;
    EXPECT_TRUE(exists(path + "-5"));
    EXPECT_THAT(verify(path + "-5"), IsEmpty());
  };
  set(a, 8);
  saver.save(*session, path, 5);
  EXPECT_GE(looks, 4) << "data, meta, index, state";
  EXPECT_EQ(BundleReader(files, path + "-5").read("a").item<float>(), 8);
}

TEST_F(CommitProtocol, TheCallerLearnsOfTheSnapshotBeforeTheFirstByte) {
  Saver saver(options);
  std::optional<int64_t> told;
  saver.save(*session, path, step, {.after_snapshot = [&](std::optional<int64_t> at) {
    told = at;
    EXPECT_THAT(disk.operations(), IsEmpty());
  }});
  EXPECT_EQ(told, 0);
}

TEST_F(CommitProtocol, ALockedDirectoryThatIsGoneIsNotMadeAnew) {
  const std::string mounted = directory.file("mounted");
  std::filesystem::create_directory(mounted);
  const DirectoryLock lock(mounted);
  std::filesystem::rename(mounted, directory.file("elsewhere"));
  Saver saver(options);
  EXPECT_THROW(saver.save(*session, mounted + "/model", 1), DirectoryAwayError);
  EXPECT_FALSE(std::filesystem::exists(mounted));
  std::filesystem::rename(directory.file("elsewhere"), mounted);
  EXPECT_NO_THROW(saver.save(*session, mounted + "/model", 1));
}

}  // namespace
}  // namespace longhaul
