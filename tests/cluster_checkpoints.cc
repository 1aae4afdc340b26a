#include "tests/cluster_checkpoints.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"

namespace longhaul::testing {

std::string newest_cluster_checkpoint(const std::string& logdir) {
  return newest_intact_checkpoint(FileSystem::real(), logdir, "model.ckpt").prefix.value_or("");
}

int64_t saved_number(const std::string& prefix, const std::string& variable) {
  return BundleReader(FileSystem::real(), prefix).read(variable).item<int64_t>();
}

int64_t step_of_checkpoint(const std::string& prefix) {
  return std::stoll(prefix.substr(prefix.rfind('-') + 1));
}

void expect_of_one_moment(const std::string& prefix) {
  for (const char* shard : {".data-00000-of-00002", ".data-00001-of-00002"}) {
    EXPECT_TRUE(std::filesystem::exists(prefix + shard)) << prefix << shard;
  }
  EXPECT_EQ(saved_number(prefix, "global_step"), step_of_checkpoint(prefix));
  int64_t batches = 0;
  for (const char* replica : {"batches_seen_0", "batches_seen_1", "batches_seen_2"}) {
    EXPECT_GT(saved_number(prefix, replica), 0) << replica << " has made no step";
    batches += saved_number(prefix, replica);
  }
  EXPECT_EQ(batches, step_of_checkpoint(prefix)) << "the checkpoint is not of one moment";
}

}  // namespace longhaul::testing
