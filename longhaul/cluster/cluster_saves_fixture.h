#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/cluster/worker/training_cluster_fixture.h"
#include "longhaul/io/files/bucket_files.h"
#include "longhaul/ops/ops.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// A disk that does not have the directories that others have.
class OwnDisk : public BucketFiles {
 public:
  OwnDisk() : BucketFiles(FileSystem::real(), {}) {}
  std::unique_ptr<ReadableFile> open(const std::string& path) override { refuse("open", path); }
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists) override { refuse("create", path); }
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions&) override {
    refuse("create", path);
  }
  bool exists(const std::string&) override { return false; }

 private:
  [[noreturn]] static void refuse(const char* operation, const std::string& path) {
    throw NotFoundError(std::string(operation) + " " + path + ": No such file or directory");
  }
};

// A disk that can be read, but not written to.
class ReadOnlyDisk : public BucketFiles {
 public:
  ReadOnlyDisk() : BucketFiles(FileSystem::real(), {}) {}
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists) override { refuse(path); }
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions&) override {
    refuse(path);
  }

 private:
  [[noreturn]] static void refuse(const std::string& path) {
    throw PermissionDeniedError("create " + path + ": Read-only file system");
  }
};

// A step adds 1 to `a`, on ps 0, and to `b`, on ps 1, what `a` was, and 1: so b = a (a + 1) / 2 between two steps, in
// each of their elements.
struct SavedCounting {
  explicit SavedCounting(int64_t elements = 1000)
      : a(ops::variable(on0, "a", filled(elements, 0))),
        b(ops::variable(on1, "b", filled(elements, 0))),
        ones(ops::constant(on0, filled(elements, 1))) {}

  static Tensor filled(int64_t elements, float with) {
    return Tensor::of<float>(Shape{elements}, std::vector<float>(static_cast<size_t>(elements), with));
  }

  Graph graph;
  Scope root{graph};
  Scope on0 = root.with_device("/job:ps/task:0"), on1 = root.with_device("/job:ps/task:1");
  Variable a, b;
  Output ones;
  Variable step = ops::create_global_step(on0);
  Operation train = ops::group(root,
                               {ops::assign_add(on0, a, ones).op(), ops::assign_add(on1, b, ops::add(on1, a, 1.0)).op(),
                                ops::assign_add(on0, step, ops::constant(on0, int64_t{1})).op()},
                               "train");
  Operation init = ops::global_variables_initializer(root);
};

// That a checkpoint is intact and is what the model was between two steps; returns that step.
inline int64_t expect_whole_checkpoint(const std::string& prefix) {
  const BundleReader reader(FileSystem::real(), prefix);
  EXPECT_THAT(reader.verify(), ::testing::IsEmpty()) << prefix;
  const Tensor a = reader.read("a"), b = reader.read("b");
  const int64_t step = reader.read("global_step").item<int64_t>();
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const float at = a.flat<float>()[static_cast<size_t>(i)];
    EXPECT_EQ(at, static_cast<float>(step)) << prefix;
    EXPECT_EQ(b.flat<float>()[static_cast<size_t>(i)], at * (at + 1) / 2) << prefix;
  }
  return step;
}

// The names in a directory that are of no committed checkpoint, nor its state file.
inline std::vector<std::string> leftovers_in(const std::string& directory) {
  std::vector<std::string> left;
  for (const std::string& name : FileSystem::real().list(directory)) {
    const bool is_temporary = name.find(".tempstate") != name.npos || name.find(".aside") != name.npos;
    if (is_temporary || name.starts_with("longhaul.probe-")) left.push_back(name);
  }
  return left;
}

// A model on two ps and the chief's Saver, with a disk for each that notes what is done.
class ClusterSavesTest : public ::testing::Test {
 protected:
  explicit ClusterSavesTest(TrainingCluster::Disks disks = {}) : cluster_(with_defaults(std::move(disks))) {}

  TrainingCluster::Disks with_defaults(TrainingCluster::Disks disks) {
    disks.emplace(kPs, &disk0_);
    disks.emplace(kPs1, &disk1_);
    return disks;
  }

  std::string path(const std::string& name = "model") const { return directory_.file(name); }
  SaverOptions options() { return {.graph = &model_.graph, .files = &chief_disk_}; }
  std::unique_ptr<ClusterSession> initialised() {
    auto session = cluster_.session(model_.graph);
    session->run(model_.init);
    return session;
  }
  std::vector<std::string> names() const { return FileSystem::real().list(directory_.path()); }
  void expect_nothing_left() {
    EXPECT_TRUE(cluster_.nothing_is_left(Seconds{60}));
    EXPECT_THAT(leftovers_in(directory_.path()), ::testing::IsEmpty());
  }
  // On files of checkpoints, not on probes.
  static size_t count(const testing::FaultyFileSystem& disk, const std::string& operation) {
    size_t found = 0;
    for (const std::string& done : disk.operations()) {
      if (done.starts_with(operation) && done.find(kDirectoryProbe) == done.npos) ++found;
    }
    return found;
  }

  testing::TemporaryDirectory directory_;
  testing::FaultyFileSystem chief_disk_, disk0_, disk1_;
  SavedCounting model_;
  TrainingCluster cluster_;
  const SimulatedClock::AtWork work_{cluster_.clock()};
};

// One on which the ps do not see the chief's directory.
class UnsharedSavesTest : public ClusterSavesTest {
 protected:
  UnsharedSavesTest() : ClusterSavesTest({{kPs, &own0_}, {kPs1, &own1_}}) {}
  static inline OwnDisk own0_, own1_;
};

}  // namespace longhaul
