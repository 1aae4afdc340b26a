// What an error, a full disk, a damaged checkpoint or a lost directory leave of an exported state dict, and of an
// import.
#include <gmock/gmock.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AnyOf;
using testing::FaultyFileSystem;
using ::testing::IsEmpty;

class StateDictCommit : public ::testing::Test {
 protected:
  StateDictCommit() : log_before_(set_log_sink([](LogLevel, const std::string&) {})) {
    save(directory_.file("m-1"), 1);
    save(directory_.file("m-2"), 2);
    export_state_dict(directory_.file("m-1"), path());
    old_ = read_file(FileSystem::real(), path());
    export_state_dict(directory_.file("m-2"), path());
    new_ = read_file(FileSystem::real(), path());
  }
  ~StateDictCommit() override { set_log_sink(log_before_); }

  static void save(const std::string& prefix, float value) {
    BundleWriter writer(FileSystem::real(), prefix);
    writer.add("w", Tensor::of<float>({value, value}));
    writer.add("v", Tensor::scalar<int64_t>(5));
    writer.finish();
  }
  std::string path() const { return out_.file("m.pt"); }

  const testing::TemporaryDirectory directory_, out_;
  std::string old_, new_;
  LogSink log_before_;
};

TEST_F(StateDictCommit, AnExportThatFailsAnywhereLeavesTheOldFileOrTheNewOneAndNoDebris) {
  bool failed = true;
  for (int n = 0; failed; ++n) {
    write_file_atomically(FileSystem::real(), path(), old_);
    FaultyFileSystem files;
    files.fail_operation(n, FaultyFileSystem::Fault::kOnce);
    try {
      export_state_dict(directory_.file("m-2"), path(), {}, files);
      failed = false;
      EXPECT_GT(n, 6) << "create, append, sync, close, rename, sync_directory and more can fail";
    } catch (const UnavailableError&) {
    }
    EXPECT_THAT(read_file(FileSystem::real(), path()), AnyOf(old_, new_)) << n;
    EXPECT_EQ(FileSystem::real().list(out_.path()).size(), 1u) << n;
  }
  EXPECT_EQ(read_file(FileSystem::real(), path()), new_);
}

TEST_F(StateDictCommit, AFullDiskLeavesTheOldFile) {
  write_file_atomically(FileSystem::real(), path(), old_);
  FaultyFileSystem files;
  files.fail_writes_after(20);
  EXPECT_THROW(export_state_dict(directory_.file("m-2"), path(), {}, files), ResourceExhaustedError);
  EXPECT_EQ(read_file(FileSystem::real(), path()), old_);
  EXPECT_EQ(FileSystem::real().list(out_.path()).size(), 1u);
}

TEST_F(StateDictCommit, ADamagedTensorIsNotExported) {
  const std::string data = data_path(directory_.file("m-2"), 0, 1);
  std::string damaged = read_file(FileSystem::real(), data);
  damaged[3] = static_cast<char>(damaged[3] ^ 4);
  write_file_atomically(FileSystem::real(), data, damaged);
  write_file_atomically(FileSystem::real(), path(), old_);
  EXPECT_THROW(export_state_dict(directory_.file("m-2"), path()), DataLossError);
  EXPECT_EQ(read_file(FileSystem::real(), path()), old_);
}

TEST_F(StateDictCommit, ADamagedFileLeavesNothingOfItsImport) {
  std::string damaged = new_;
  damaged[damaged.rfind("m/data/1") - 200] ^= 1;
  for (size_t i = 0; i < new_.size(); i += 7) {
    damaged = new_;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    write_file_atomically(FileSystem::real(), out_.file("damaged.pt"), damaged);
    try {
      import_state_dict(out_.file("damaged.pt"), out_.file("n-1"));
      EXPECT_EQ(BundleReader(FileSystem::real(), out_.file("n-1")).read("w").flat<float>()[1], 2.0f) << i;
      remove_checkpoint(FileSystem::real(), out_.file("n-1"));
    } catch (const Error&) {
    }
    EXPECT_FALSE(checkpoint_exists(FileSystem::real(), out_.file("n-1"))) << i;
  }
}

TEST_F(StateDictCommit, AnImportThatFailsAnywhereLeavesTheOldCheckpointOrTheNewOne) {
  bool failed = true;
  for (int n = 0; failed; ++n) {
    save(directory_.file("m-1"), 1);
    FaultyFileSystem files;
    files.fail_operation(n);
    try {
      import_state_dict(path(), directory_.file("m-1"), {}, files);
      failed = false;
    } catch (const UnavailableError&) {
    }
    const BundleReader reader(FileSystem::real(), directory_.file("m-1"));
    EXPECT_THAT(reader.verify(), IsEmpty()) << n;
    EXPECT_THAT(reader.read("w").flat<float>()[1], AnyOf(1.0f, 2.0f)) << n;
  }
}

}  // namespace
}  // namespace longhaul
