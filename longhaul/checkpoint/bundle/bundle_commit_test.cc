// What a crash or an error leaves behind, at every operation on the disk that the commit protocol of BundleWriter
// makes.
#include <gmock/gmock.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/set_aside.h"
#include "longhaul/checkpoint/genuine_test.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using testing::FaultyFileSystem;
using ::testing::IsSupersetOf;
using testing::TemporaryDirectory;

void save(FileSystem& files, const std::string& prefix, float value) {
  BundleWriter writer(files, prefix);
  writer.add("value", Tensor::scalar(value));
  writer.add("name", Tensor::scalar("x"));
  writer.add_file(meta_graph_filename(prefix), value == 1.0f ? "one" : "two");
  writer.finish();
}

// The saved value, after every checksum was verified; 0 if there is no checkpoint.
float value_of(const std::string& prefix) {
  if (!checkpoint_exists(FileSystem::real(), prefix)) return 0;
  const BundleReader reader(FileSystem::real(), prefix);
  EXPECT_THAT(reader.verify(), ElementsAre());
  return reader.read("value").item<float>();
}

// Those of a process that lives are left alone, as this one does after its crash was played.
std::vector<std::string> names_without_temporaries(const TemporaryDirectory& directory) {
  auto names = FileSystem::real().list(directory.path());
  std::erase_if(
      names, [](const std::string& name) { return name.find(".temp") != name.npos || name.find(".tmp") != name.npos; });
  return names;
}

class BundleCommit : public ::testing::Test {
 protected:
  BundleCommit() : old_sink_(set_log_sink([](LogLevel, const std::string&) {})) {}
  ~BundleCommit() override { set_log_sink(old_sink_); }

  // Saves 2 over the 1 (or over nothing), with the n-th operation failing. False: there are not so many.
  bool save_with_fault(const TemporaryDirectory& directory, bool over_another, int n, FaultyFileSystem::Fault fault) {
    const std::string prefix = directory.file("model.ckpt-7");
    if (over_another) save(FileSystem::real(), prefix, 1.0f);
    FaultyFileSystem files;
    files.fail_operation(n, fault);
    try {
      save(files, prefix, 2.0f);
    } catch (const Error&) {
      failed_ = true;
      return true;
    }
    failed_ = false;
    return static_cast<int>(files.operations().size()) > n;
  }

  LogSink old_sink_;
  bool failed_ = false;
};

TEST_F(BundleCommit, ACrashAtAnyMomentLeavesTheOldOrTheNewWhole) {  // unlike CB-3
  bool saw_old = false, saw_new = false;
  for (int n = 0;; ++n) {
    const TemporaryDirectory directory;
    if (!save_with_fault(directory, true, n, FaultyFileSystem::Fault::kForGood)) break;
    const float value = value_of(directory.file("model.ckpt-7"));
    EXPECT_TRUE(value == 1.0f || value == 2.0f) << "operation " << n << ": " << value;
    (value == 1.0f ? saw_old : saw_new) = true;
    save(FileSystem::real(), directory.file("model.ckpt-7"), 2.0f);  // the next run
    EXPECT_EQ(value_of(directory.file("model.ckpt-7")), 2.0f);
    EXPECT_THAT(names_without_temporaries(directory),
                ElementsAre("model.ckpt-7.data-00000-of-00001", "model.ckpt-7.index", "model.ckpt-7.meta"))
        << "operation " << n;
  }
  EXPECT_TRUE(saw_old && saw_new);
}

TEST_F(BundleCommit, ACrashOfAFirstSaveLeavesNoneOrTheNewWhole) {
  for (int n = 0;; ++n) {
    const TemporaryDirectory directory;
    if (!save_with_fault(directory, false, n, FaultyFileSystem::Fault::kForGood)) break;
    const float value = value_of(directory.file("model.ckpt-7"));
    EXPECT_TRUE(value == 0.0f || value == 2.0f) << "operation " << n << ": " << value;
  }
}

TEST_F(BundleCommit, AnErrorLeavesTheOldAndNoTemporaries) {
  for (int n = 0;; ++n) {
    const TemporaryDirectory directory;
    if (!save_with_fault(directory, true, n, FaultyFileSystem::Fault::kOnce)) break;
    const float value = value_of(directory.file("model.ckpt-7"));
    EXPECT_TRUE(value == 1.0f || value == 2.0f) << "operation " << n << ": " << value;
    EXPECT_TRUE(failed_ || value == 2.0f) << "operation " << n;
    for (const auto& name : FileSystem::real().list(directory.path())) {
      EXPECT_EQ(name.find(".index.tempstate"), std::string::npos) << name;
    }
  }
}

// A program's own file system, which throws what it likes.
class OddRemove : public FaultyFileSystem {
 public:
  void rename(const std::string& from, const std::string& to) override {
    FaultyFileSystem::rename(from, to);
    if (to.ends_with("model.ckpt-7.index")) is_odd = true;
  }
  void remove(const std::string& path) override {
    if (is_odd) throw 42;
    FaultyFileSystem::remove(path);
  }
  bool is_odd = false;  // set once the checkpoint is committed
};

TEST_F(BundleCommit, AnOddExceptionOfTheCleanupIsSwallowed) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.file("model.ckpt-7");
  save(FileSystem::real(), prefix, 1.0f);
  OddRemove files;
  files.is_odd = true;
  files.fail_writes_after(0);
  EXPECT_THROW(save(files, prefix, 2.0f), ResourceExhaustedError);
  EXPECT_EQ(value_of(prefix), 1.0f);
}

TEST_F(BundleCommit, AnOddExceptionAfterTheCommitDoesNotUndoTheSave) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.file("model.ckpt-7");
  save(FileSystem::real(), prefix, 1.0f);
  OddRemove files;
  EXPECT_NO_THROW(save(files, prefix, 2.0f));
  EXPECT_TRUE(files.is_odd);
  EXPECT_EQ(value_of(prefix), 2.0f);
}

TEST_F(BundleCommit, AFullDiskLeavesTheOld) {
  for (uint64_t bytes = 0; bytes < 200; bytes += 5) {
    const TemporaryDirectory directory;
    const std::string prefix = directory.file("model.ckpt-7");
    save(FileSystem::real(), prefix, 1.0f);
    const auto before = FileSystem::real().list(directory.path());
    FaultyFileSystem files;
    files.fail_writes_after(bytes);
    try {
      save(files, prefix, 2.0f);
    } catch (const ResourceExhaustedError&) {
      EXPECT_EQ(value_of(prefix), 1.0f) << bytes;
      EXPECT_EQ(FileSystem::real().list(directory.path()), before) << bytes;
      EXPECT_EQ(read_file(FileSystem::real(), meta_graph_filename(prefix)), "one");
      continue;
    }
    EXPECT_EQ(value_of(prefix), 2.0f);
    return;
  }
  FAIL() << "the checkpoint is larger than this test thinks";
}

// The order that the protocol depends on: bytes before names, data before index, everything before the commit.
TEST_F(BundleCommit, NamesAreGivenToWhatIsDurable) {  // unlike CB-2
  const TemporaryDirectory directory;
  FaultyFileSystem files;
  save(files, directory.file("m"), 1.0f);
  std::vector<std::string> order;
  for (const std::string& operation : files.operations()) {
    const std::string kind = operation.substr(0, operation.find(' '));
    if (kind == "sync" || kind == "rename")
      order.push_back(kind + (operation.find("data") != operation.npos    ? " data"
                              : operation.find("index") != operation.npos ? " index"
                                                                          : " meta"));
    if (kind == "sync_directory") order.push_back(kind);
  }
  EXPECT_THAT(order, ElementsAre("sync meta", "sync index", "sync_directory", "sync data", "rename data", "rename meta",
                                 "sync_directory", "rename index", "sync_directory"));
}

TEST_F(BundleCommit, AnExtraFileStaysAndGoesWithItsCheckpoint) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.file("m-1"), meta = meta_graph_filename(prefix);
  bool was_renamed = false;
  for (int n = 0;; ++n) {
    FaultyFileSystem files;
    files.fail_operation(n);
    std::string error;
    try {
      save(files, prefix, 1.0f);
    } catch (const Error& failed) {
      error = failed.what();
    }
    EXPECT_EQ(files.exists(meta), files.exists(index_path(prefix))) << "operation " << n << ": " << error;
    was_renamed |= error.find(".index") != error.npos && error.find("rename") != error.npos;
    if (files.exists(meta)) break;
    EXPECT_THAT(files.list(directory.path()), ElementsAre()) << "operation " << n << ": " << error;
  }
  EXPECT_TRUE(was_renamed) << "no fault was met after the file had its name";
}

TEST_F(BundleCommit, ReplacesACheckpointOfSeveralDataFiles) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.file("m");
  save(FileSystem::real(), prefix, 1.0f);
  write_file_atomically(FileSystem::real(), data_path(prefix, 1, 2), "of an older set");
  save(FileSystem::real(), prefix, 2.0f);
  EXPECT_EQ(value_of(prefix), 2.0f);
  EXPECT_THAT(FileSystem::real().list(directory.path()), ElementsAre("m.data-00000-of-00001", "m.index", "m.meta"));
}

TEST_F(BundleCommit, WhatIsPutBackHasNoMetaGraphOfTheCheckpointThatWasToReplaceIt) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.file("m-1"), meta = meta_graph_filename(prefix);
  FileSystem& files = FileSystem::real();
  save(files, prefix, 1.0f);
  set_aside(files, prefix);
  write_file_atomically(files, meta, "two");
  put_back(files, prefix);
  EXPECT_EQ(read_file(files, meta), "one");
  files.remove(meta);
  set_aside(files, prefix);
  write_file_atomically(files, meta, "two");
  put_back(files, prefix);
  EXPECT_FALSE(files.exists(meta));
  EXPECT_EQ(value_of(prefix), 1.0f);
}

TEST_F(BundleCommit, TheNextSaveRemovesTheTemporariesOfDeadProcesses) {
  const TemporaryDirectory directory;
  const std::vector<std::string> dead = {"model.ckpt-5.index.tempstate123",
                                         "model.ckpt-5.data-00000-of-00001.tempstate12.3",
                                         "model.ckpt.index.tempstate9", "model.ckpt-5.aside.meta.tempstate4.5"};
  const std::vector<std::string> others = {"model.ckpt-5.index.tempstatex", "model.ckpt-a.index.tempstate1",
                                           "model.ckpt2-5.index.tempstate1", "model.ckpt-5.txt.tempstate1",
                                           "checkpoint"};
  for (const auto& name : dead) write_file_atomically(FileSystem::real(), directory.file(name), "");
  for (const auto& name : others) write_file_atomically(FileSystem::real(), directory.file(name), "");
  BundleWriter alive(FileSystem::real(), directory.file("model.ckpt-6"));
  save(FileSystem::real(), directory.file("model.ckpt-7"), 1.0f);
  alive.finish();
  for (const auto& name : dead) EXPECT_FALSE(FileSystem::real().exists(directory.file(name))) << name;
  EXPECT_THAT(FileSystem::real().list(directory.path()), IsSupersetOf(others));
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), directory.file("model.ckpt-6")));
}

TEST_F(BundleCommit, DataWhoseIndexWasLostIsNotReplaced) {
  const TemporaryDirectory directory;
  FileSystem& files = FileSystem::real();
  const std::string prefix = directory.file("model.ckpt-7"), data = data_path(prefix, 0, 1);
  save(files, prefix, 1.0f);
  const std::string before = read_file(files, data);
  files.remove(index_path(prefix));
  save(files, prefix, 2.0f);
  EXPECT_EQ(value_of(prefix), 2);
  EXPECT_EQ(read_file(files, data + ".corrupt"), before);
}

}  // namespace
}  // namespace longhaul
