#include "longhaul/testing/memory_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MemoryFileSystem, ReadsWhatWasPut) {
  MemoryFileSystem files;
  files.put("a/b", "hello");
  EXPECT_EQ(read_file(files, "a/b"), "hello");
  const auto file = files.open("a/b");
  files.put("a/b", "other");
  char bytes[8];
  EXPECT_EQ(std::string(bytes, file->read(3, bytes, sizeof bytes)), "lo");
  EXPECT_EQ(file->read(5, bytes, sizeof bytes), 0u);
  EXPECT_THROW(files.open("a/c"), NotFoundError);
}

TEST(MemoryFileSystem, KnowsItsDirectories) {
  MemoryFileSystem files;
  files.put("a/b/c", "");
  files.put("a/b/d", "");
  files.put("a/e", "");
  EXPECT_THAT(files.list("a"), ElementsAre("b", "e"));
  EXPECT_THAT(files.list("b"), IsEmpty());
  EXPECT_TRUE(files.is_directory("a/b"));
  EXPECT_TRUE(files.exists("a/b"));
  EXPECT_FALSE(files.is_directory("a/e"));
  EXPECT_FALSE(files.exists("a/f"));
  EXPECT_THROW(files.modified_at("a/f"), NotFoundError);
}

TEST(MemoryFileSystem, ChangesNothing) {
  MemoryFileSystem files;
  EXPECT_THROW(files.create("a", FileSystem::IfExists::kFail), UnimplementedError);
  EXPECT_THROW(files.remove("a"), UnimplementedError);
}

}  // namespace
}  // namespace longhaul::testing
