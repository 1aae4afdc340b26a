// Checkpoints of a model on several tasks.
#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"
#include "longhaul/cluster/cluster_saves_fixture.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string contents_of(const std::string& path) {
  return read_file(FileSystem::real(), path);
}

TEST_F(ClusterSavesTest, EachTaskWritesItsOwnDataFileAndTheChiefNamesThem) {  // unlike SA-120
  const auto session = initialised();
  session->run(model_.train);
  Saver saver(options());
  EXPECT_EQ(saver.save(*session, path(), model_.step), path("model-1"));
  EXPECT_THAT(names(), ElementsAre("checkpoint", "model-1.data-00000-of-00002", "model-1.data-00001-of-00002",
                                   "model-1.index", "model-1.meta"));
  EXPECT_EQ(expect_whole_checkpoint(path("model-1")), 1);
  EXPECT_EQ(count(disk0_, "create model-1.data-00000-of-00002.tempstate"), 1u);
  EXPECT_EQ(count(disk1_, "create model-1.data-00001-of-00002.tempstate"), 1u);
  EXPECT_EQ(count(disk0_, "sync model-1.data"), 1u);
  EXPECT_EQ(count(disk0_, "rename") + count(disk1_, "rename"), 0u);
  EXPECT_EQ(count(chief_disk_, "create model-1.data"), 0u);
  EXPECT_EQ(count(chief_disk_, "rename model-1.data"), 2u);
  session->close();
  expect_nothing_left();
}

TEST_F(UnsharedSavesTest, WhereATaskDoesNotSeeTheDirectoryTheValuesComeToTheChief) {  // unlike SA-121
  const auto session = initialised();
  session->run(model_.train);
  Saver saver(options());
  saver.save(*session, path(), model_.step);
  EXPECT_EQ(expect_whole_checkpoint(path("model-1")), 1);
  EXPECT_EQ(BundleReader(chief_disk_, path("model-1")).num_shards(), 2);
  EXPECT_EQ(count(chief_disk_, "create model-1.data"), 2u);
  session->close();
  expect_nothing_left();
}

TEST_F(UnsharedSavesTest, ALargeValueComesInPieces) {
  SavedCounting large(10007);
  const StreamLimits few{.piece = 1024, .in_flight = 3000};
  const auto session = cluster_.session(large.graph, {}, kWorker, few);
  session->run(large.init);
  session->run(large.train);
  const size_t before = cluster_.network().calls(kWorker, kPs);
  Saver({.graph = &large.graph}).save(*session, path(), 7);
  EXPECT_GE(cluster_.network().calls(kWorker, kPs), before + 10007 * 4 / 1024);
  EXPECT_EQ(expect_whole_checkpoint(path("model-7")), 1);
}

TEST(ClusterSaves, BothWaysGiveTheSameBytes) {
  std::vector<std::string> found;
  for (const bool is_shared : {true, false}) {
    testing::TemporaryDirectory directory;
    OwnDisk own;
    TrainingCluster cluster(is_shared ? TrainingCluster::Disks{} : TrainingCluster::Disks{{kPs, &own}, {kPs1, &own}});
    const SimulatedClock::AtWork work(cluster.clock());
    SavedCounting model(50000);
    const auto session = cluster.session(model.graph);
    session->run(model.init);
    session->run(model.train);
    Saver({.graph = &model.graph}).save(*session, directory.file("m"));
    for (const char* part : {"m.index", "m.data-00000-of-00002", "m.data-00001-of-00002"})
      found.push_back(contents_of(directory.file(part)));
  }
  ASSERT_EQ(found.size(), 6u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i], found[i + 3]) << i;
}

// Beside a loop of steps of another session, several times: each checkpoint is the state between two steps.
void save_beside_training(TrainingCluster& cluster, const std::string& path) {
  SavedCounting model, other;
  const auto training = cluster.session(model.graph);
  const auto saving = cluster.session(other.graph, {}, TrainingCluster::tasks().back());
  training->run(model.init);
  std::atomic<bool> is_over = false;
  std::atomic<int> steps = 0;
  std::thread trainer([&] {
    const SimulatedClock::AtWork work(cluster.clock());
    EXPECT_EQ(coded_error_of([&] {
                for (; !is_over; ++steps) training->run(model.train);
              }),
              "");
  });
  Saver saver({.graph = &other.graph, .max_to_keep = 0});
  int64_t last = -1;
  const auto save = [&] {
    for (int i = 0; i < 10; ++i) {
      const int64_t step = expect_whole_checkpoint(saver.save(*saving, path, other.step));
      EXPECT_GE(step, last);
      last = step;
    }
  };
  EXPECT_EQ(coded_error_of(save), "");
  is_over = true;
  trainer.join();
  EXPECT_GT(steps, 0);
}

TEST_F(ClusterSavesTest, ACheckpointIsTheStateBetweenTwoSteps) {  // unlike SA-122
  save_beside_training(cluster_, path());
}

TEST_F(UnsharedSavesTest, SoIsOneThatComesToTheChief) {
  save_beside_training(cluster_, path());
}

TEST_F(ClusterSavesTest, WhatIsOnTheDiskIsNotWrittenAgain) {
  const auto session = initialised();
  Saver saver(options());
  saver.save(*session, path(), model_.step, {.skip_if_saved = true});
  const size_t before = count(disk0_, "create");
  saver.save(*session, path(), model_.step, {.skip_if_saved = true});
  EXPECT_EQ(count(disk0_, "create"), before);
  session->run(ops::assign_add(model_.on1, model_.b, ops::constant(model_.on1, SavedCounting::filled(1000, 1))).op());
  saver.save(*session, path(), model_.step, {.skip_if_saved = true});
  EXPECT_EQ(count(disk0_, "create"), before + 1);
  EXPECT_EQ(BundleReader(chief_disk_, path("model-0")).read("b").flat<float>()[0], 1.f);
}

TEST_F(ClusterSavesTest, ATaskWithoutVariablesWritesNothing) {
  Graph graph;
  const Scope on1 = Scope(graph).with_device("/job:ps/task:1");
  const Variable v = ops::variable(on1, "v", Tensor::scalar(3.f));
  const auto session = cluster_.session(graph);
  session->run(v.initializer());
  Saver({.graph = &graph, .files = &chief_disk_}).save(*session, path());
  EXPECT_EQ(BundleReader(chief_disk_, path()).num_shards(), 1);
  EXPECT_EQ(BundleReader(chief_disk_, path()).read("v").item<float>(), 3.f);
  EXPECT_EQ(count(disk0_, "create"), 0u);
}

TEST_F(ClusterSavesTest, TheLimitOfBytesIsThatOfAllTasksTogether) {
  const auto session = initialised();
  SaverOptions slow = options();
  slow.max_bytes_per_second = 4000;  // of which each task gets a half, for 4000 bytes and the step
  Saver saver(slow);
  const Seconds began = cluster_.clock().now();
  saver.save(*session, path(), 1);
  EXPECT_GE((cluster_.clock().now() - began).count(), 1.9);
  EXPECT_LE((cluster_.clock().now() - began).count(), 30);
  EXPECT_EQ(expect_whole_checkpoint(path("model-1")), 0);
}

TEST_F(ClusterSavesTest, AFullDiskOfATaskIsNamedAndNothingIsCommitted) {
  const auto session = initialised();
  Saver saver(options());
  saver.save(*session, path(), 1);
  disk1_.fail_writes_after(100);
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { saver.save(*session, path(), 2); }),
              AllOf(HasSubstr("From /job:ps/replica:0/task:1"), HasSubstr("model-2.data-00001-of-00002")));
  EXPECT_FALSE(checkpoint_exists(chief_disk_, path("model-2")));
  disk1_.heal();
  saver.save(*session, path(), 3);
  EXPECT_EQ(BundleReader(chief_disk_, path("model-3")).num_shards(), 2);
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterSavesTest, AChiefThatLostItsDirectoryNamesNothing) {
  const auto session = initialised();
  DirectoryLock lock(directory_.path());
  Saver saver(options());
  saver.save(*session, path(), 1);
  OwnerRecord owner = lock.owner();
  owner.token = std::string(32, 'e');
  write_owner(FileSystem::real(), directory_.path(), owner);
  const size_t before = count(chief_disk_, "rename");
  EXPECT_THROW(saver.save(*session, path(), 2), DirectoryLostError);
  EXPECT_EQ(count(chief_disk_, "rename"), before);
  EXPECT_FALSE(checkpoint_exists(chief_disk_, path("model-2")));
  session->close();
  expect_nothing_left();
}

// Another chief takes the directory while a task writes.
class AtCreation : public testing::FaultyFileSystem {
 public:
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& how) override {
    if (then) then();
    return FaultyFileSystem::create_large(path, how);
  }
  std::function<void()> then;
};

TEST(ClusterSaves, AChiefThatLosesItsDirectoryMeanwhileNamesNothing) {
  testing::TemporaryDirectory directory;
  AtCreation disk;
  testing::FaultyFileSystem chief_disk;
  TrainingCluster cluster({{kPs1, &disk}});
  const SimulatedClock::AtWork work(cluster.clock());
  SavedCounting model;
  const auto session = cluster.session(model.graph);
  session->run(model.init);
  DirectoryLock lock(directory.path());
  Saver saver({.graph = &model.graph, .files = &chief_disk});
  disk.then = [&] {
    OwnerRecord owner = lock.owner();
    owner.token = std::string(32, 'e');
    write_owner(FileSystem::real(), directory.path(), owner);
  };
  EXPECT_THROW(saver.save(*session, directory.file("m"), 2), DirectoryLostError);
  for (const std::string& done : chief_disk.operations()) EXPECT_FALSE(done.starts_with("rename")) << done;
  EXPECT_FALSE(checkpoint_exists(chief_disk, directory.file("m-2")));
  session->close();
  EXPECT_TRUE(cluster.nothing_is_left(Seconds{60}));
  EXPECT_THAT(leftovers_in(directory.path()), IsEmpty());
}

TEST_F(ClusterSavesTest, TwoChiefsOfTwoModelsSaveIntoOneDirectory) {
  const auto session = initialised();
  const auto other = cluster_.session(model_.graph, {}, TrainingCluster::tasks().back());
  Saver first(options()), second({.graph = &model_.graph});
  std::thread beside([&] {
    const SimulatedClock::AtWork work(cluster_.clock());
    EXPECT_EQ(coded_error_of([&] {
                for (int i = 1; i <= 3; ++i) second.save(*other, path("second"), i, {.latest_filename = "of_second"});
              }),
              "");
  });
  EXPECT_EQ(coded_error_of([&] {
              for (int i = 1; i <= 3; ++i) first.save(*session, path("first"), i);
            }),
            "");
  beside.join();
  for (const char* name : {"first-3", "second-3"}) expect_whole_checkpoint(path(name));
  EXPECT_THAT(leftovers_in(directory_.path()), IsEmpty());
}

TEST_F(ClusterSavesTest, AnOldProbeOfADeadChiefIsRemoved) {
  const auto session = initialised();
  const std::string stale = path("longhaul.probe-0123"), fresh = path("longhaul.probe-4567");
  for (const std::string& probe : {stale, fresh}) FileSystem::real().create(probe)->close();
  std::filesystem::last_write_time(stale, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  Saver saver(options());
  saver.save(*session, path(), 1);
  EXPECT_THAT(leftovers_in(directory_.path()), ElementsAre("longhaul.probe-4567"));
}

class ReadOnlySavesTest : public ClusterSavesTest {
 protected:
  ReadOnlySavesTest() : ClusterSavesTest({{kPs1, &read_only_}}) {}
  static inline ReadOnlyDisk read_only_;
};

TEST_F(ReadOnlySavesTest, ATaskThatMayNotWriteThereSendsItsValuesToTheChief) {
  const auto session = initialised();
  session->run(model_.train);
  Saver saver(options());
  Mutex mutex;
  std::string logged;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) {
    const MutexLock lock(mutex);
    logged += message + "\n";
  });
  saver.save(*session, path(), 1);
  set_log_sink(before);
  EXPECT_EQ(expect_whole_checkpoint(path("model-1")), 1);
  EXPECT_THAT(logged, AllOf(HasSubstr(kPs1), HasSubstr("it may not write there"), HasSubstr("Read-only")));
  session->run(model_.init);
  saver.restore(*session, path("model-1"));
  EXPECT_EQ(session->run({model_.step, model_.a}).at(0).item<int64_t>(), 1);
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterSavesTest, ASaverWithVariablesOnTasksIsSharded) {
  const Saver saver(options());
  EXPECT_TRUE(saver.to_proto().sharded());
  EXPECT_EQ(saver.to_proto().save_tensor_name(), "save/Identity:0");
  Graph local;
  ops::variable(Scope(local).with_device("/job:localhost/cpu:0"), "v", Tensor::scalar(0.f));
  EXPECT_FALSE(Saver({.graph = &local}).to_proto().sharded());
}

}  // namespace
}  // namespace longhaul
