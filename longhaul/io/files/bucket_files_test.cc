#include "longhaul/io/files/bucket_files.h"

#include <gmock/gmock.h>

#include "longhaul/base/error.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A mounted bucket: it refuses renames, links and syncs, each with the code that the kernel gives.
class Bucket : public testing::FaultyFileSystem {
 public:
  void rename(const std::string& from, const std::string&) override {
    throw UnknownError("rename " + from + ": Function not implemented");
  }
  void sync_directory(const std::string& path) override {
    throw InvalidArgumentError("sync_directory " + path + ": Invalid argument");
  }
};

class BucketFilesTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) { return directory_.file(name); }

  testing::TemporaryDirectory directory_;
  Bucket bucket_;
};

TEST_F(BucketFilesTest, WithoutRenamesAFileIsReplacedByACopy) {
  BucketFiles files(bucket_, {.renames = false, .syncs = false});
  for (const std::string& text : {std::string("one"), std::string(3 << 20, 'x'), std::string()}) {
    write_file_atomically(files, path("a"), text);
    EXPECT_EQ(read_file(files, path("a")), text);
    EXPECT_THAT(files.list(directory_.path()), ::testing::ElementsAre("a"));
  }
  EXPECT_THAT(bucket_.operations(), Not(Contains(StartsWith("sync"))));
}

TEST_F(BucketFilesTest, ARefusedRenameSaysWhichOptionToSwitchOff) {
  BucketFiles files(bucket_, {});
  EXPECT_THAT(error_of<Error>([&] { files.rename(path("a"), path("b")); }),
              AllOf(HasSubstr("Function not implemented"), HasSubstr("renames = false")));
}

TEST_F(BucketFilesTest, ARefusedSyncSaysWhichOptionToSwitchOff) {
  BucketFiles files(bucket_, {});
  EXPECT_THAT(error_of<Error>([&] { files.sync_directory(path("a")); }),
              AllOf(HasSubstr("Invalid argument"), HasSubstr("syncs = false")));
}

TEST_F(BucketFilesTest, AnotherErrorStaysAsItIs) {
  BucketFiles files(FileSystem::real(), {});
  EXPECT_THAT(error_of<Error>([&] { files.rename(path("none"), path("b")); }), Not(HasSubstr("renames = false")));
}

TEST_F(BucketFilesTest, WithAllOperationsItPassesThemOn) {
  testing::FaultyFileSystem inner;
  BucketFiles files(inner, {});
  write_file_atomically(files, path("a"), "text");
  EXPECT_THAT(inner.operations(), AllOf(Contains(StartsWith("sync a")), Contains(StartsWith("rename a")),
                                        Contains("sync_directory " + directory_.path())));
}

}  // namespace
}  // namespace longhaul
