#include "longhaul/checkpoint/retention/read_back.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

bool is_in_memory(const std::string& directory) {
  constexpr int64_t kTmpfs = 0x01021994;
  struct statfs info;
  EXPECT_EQ(::statfs(directory.c_str(), &info), 0);
  return info.f_type == kTmpfs;
}

// In blocks of 512 bytes.
int64_t read_from_disk() {
  rusage usage;
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_inblock;
}

TEST(ReadBack, ASmallCheckpointIsReadFromTheDiskToo) {
  const testing::TemporaryDirectory directory;
  LONGHAUL_NEEDS("disk", !is_in_memory(directory.path()), directory.path() + " is in memory, and on no disk");
  const std::string prefix = directory.file("m-1");
  BundleWriter writer(FileSystem::real(), prefix);
  writer.add("w", Tensor::of<float>(std::vector<float>(4096)));
  writer.finish();
  const int64_t before = read_from_disk();
  read_back(FileSystem::real(), prefix, "meta");
  EXPECT_GE(read_from_disk() - before, 4096 * 4 / 512);
}

}  // namespace
}  // namespace longhaul
