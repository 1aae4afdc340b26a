// What an error, a crash, a damaged checkpoint or a lost directory leave of an export to safetensors, and of an import.
#include <gmock/gmock.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using testing::FaultyFileSystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryDirectory;

class SafetensorsCommit : public ::testing::Test {
 protected:
  SafetensorsCommit() : log_before_(set_log_sink([](LogLevel, const std::string&) {})) {
    save(directory_.file("m-1"), 1);
    save(directory_.file("m-2"), 2);
    export_safetensors(directory_.file("m-1"), path());
    old_ = read_file(FileSystem::real(), path());
    export_safetensors(directory_.file("m-2"), path());
    new_ = read_file(FileSystem::real(), path());
  }
  ~SafetensorsCommit() override { set_log_sink(log_before_); }

  static void save(const std::string& prefix, float value) {
    BundleWriter writer(FileSystem::real(), prefix);
    writer.add("w", Tensor::of<float>({value, value}));
    writer.add("v", Tensor::scalar<int64_t>(5));
    writer.finish();
  }
  std::string path() const { return out_.file("m.safetensors"); }
  std::vector<std::string> temporaries() const {
    std::vector<std::string> names = FileSystem::real().list(out_.path());
    std::erase_if(names, [](const std::string& name) { return name.find(".temp") == name.npos; });
    return names;
  }

  TemporaryDirectory directory_, out_;
  std::string old_, new_;
  LogSink log_before_;
};

TEST_F(SafetensorsCommit, AnExportThatFailsAnywhereLeavesTheOldFileOrTheNewOneAndNoDebris) {
  for (const auto fault : {FaultyFileSystem::Fault::kOnce, FaultyFileSystem::Fault::kForGood}) {
    bool failed = true;
    for (int n = 0; failed; ++n) {
      write_file_atomically(FileSystem::real(), path(), old_);
      FaultyFileSystem files;
      files.fail_operation(n, fault);
      try {
        export_safetensors(directory_.file("m-2"), path(), {}, files);
        failed = false;
        EXPECT_GT(n, 6) << "create, append, sync, close, rename, sync_directory and more can fail";
      } catch (const UnavailableError&) {
      }
      EXPECT_THAT(read_file(FileSystem::real(), path()), AnyOf(old_, new_)) << n;
      const bool may_leave_one = fault == FaultyFileSystem::Fault::kForGood;
      EXPECT_TRUE(may_leave_one || temporaries().empty()) << n;
      for (const std::string& name : temporaries()) FileSystem::real().remove(out_.file(name));
    }
    EXPECT_EQ(read_file(FileSystem::real(), path()), new_);
  }
}

TEST_F(SafetensorsCommit, TheBytesAreSyncedBeforeTheFileGetsItsNameAndTheDirectoryAfterwards) {
  FaultyFileSystem files;
  export_safetensors(directory_.file("m-2"), path(), {}, files);
  std::vector<std::string> order;
  for (const std::string& operation : files.operations()) {
    const std::string verb = operation.substr(0, operation.find(' '));
    if (verb != "append" && verb != "flush" && verb != "make_directories") order.push_back(verb);
  }
  EXPECT_THAT(order, ::testing::ElementsAre("create", "sync", "close", "rename", "sync_directory"));
}

TEST_F(SafetensorsCommit, AFullDiskLeavesTheOldFile) {
  write_file_atomically(FileSystem::real(), path(), old_);
  FaultyFileSystem files;
  files.fail_writes_after(20);
  EXPECT_THROW(export_safetensors(directory_.file("m-2"), path(), {}, files), ResourceExhaustedError);
  EXPECT_EQ(read_file(FileSystem::real(), path()), old_);
  EXPECT_THAT(temporaries(), IsEmpty());
}

TEST_F(SafetensorsCommit, ADamagedTensorIsNotExported) {
  const std::string data = data_path(directory_.file("m-2"), 0, 1);
  const std::string whole = read_file(FileSystem::real(), data);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    write_file_atomically(FileSystem::real(), data, damaged);
    write_file_atomically(FileSystem::real(), path(), old_);
    EXPECT_THROW(export_safetensors(directory_.file("m-2"), path()), DataLossError) << i;
    EXPECT_EQ(read_file(FileSystem::real(), path()), old_);
  }
  EXPECT_THAT(temporaries(), IsEmpty());
}

// Takes the directory over when the file is created.
class StolenWhileWriting : public FaultyFileSystem {
 public:
  StolenWhileWriting(const std::string& directory, const OwnerRecord& thief) : directory_(directory), thief_(thief) {}
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override {
    write_owner(FileSystem::real(), directory_, thief_);
    return FaultyFileSystem::create_large(path, options);
  }

 private:
  const std::string directory_;
  const OwnerRecord thief_;
};

TEST_F(SafetensorsCommit, InADirectoryThatIsLostNothingIsRenamed) {
  write_file_atomically(FileSystem::real(), path(), old_);
  const DirectoryLock lock(out_.path());
  OwnerRecord thief = lock.owner();
  thief.token = std::string(32, 'e');
  StolenWhileWriting files(out_.path(), thief);
  EXPECT_THROW(export_safetensors(directory_.file("m-2"), path(), {}, files), DirectoryLostError);
  EXPECT_EQ(read_file(FileSystem::real(), path()), old_);
  EXPECT_THAT(files.operations(), Contains(HasSubstr("create m.safetensors.temp")));
  FaultyFileSystem plain;
  EXPECT_THROW(export_safetensors(directory_.file("m-2"), path(), {}, plain), DirectoryLostError);
  EXPECT_THAT(plain.operations(), ::testing::Not(Contains(HasSubstr("create")))) << "it is known before the first byte";
  EXPECT_THAT(temporaries(), IsEmpty());
}

TEST_F(SafetensorsCommit, AnImportThatFailsAnywhereLeavesTheOldCheckpointOrTheNewOne) {
  bool failed = true;
  for (int n = 0; failed; ++n) {
    save(directory_.file("m-1"), 1);
    FaultyFileSystem files;
    files.fail_operation(n);
    try {
      import_safetensors(path(), directory_.file("m-1"), {}, files);
      failed = false;
    } catch (const UnavailableError&) {
    }
    const BundleReader reader(FileSystem::real(), directory_.file("m-1"));
    EXPECT_THAT(reader.verify(), IsEmpty()) << n;
    EXPECT_THAT(reader.read("w").flat<float>()[1], AnyOf(1.0f, 2.0f)) << n;
  }
  EXPECT_EQ(BundleReader(FileSystem::real(), directory_.file("m-1")).read("w").flat<float>()[1], 2.0f);
}

}  // namespace
}  // namespace longhaul
