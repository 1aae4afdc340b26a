#include "longhaul/train/saving/checkpoint_manager.h"

#include <filesystem>

#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kHourSecs = 3600;

// Its wall time is what the test says.
class WallClock : public testing::FakeClock {
 public:
  double wall_time() const override { return wall; }
  double wall = 1e9;
};

class ManagerTest : public ::testing::Test {
 protected:
  CheckpointManagerOptions options() {
    return {.directory = directory.path(), .saver = {.graph = &graph, .files = &files, .clock = &clock}};
  }
  // With the variables initialised.
  std::unique_ptr<CheckpointManager> make(const CheckpointManagerOptions& wanted) {
    auto manager = std::make_unique<CheckpointManager>(wanted);
    if (!initialised) session->run(ops::global_variables_initializer(root));
    initialised = true;
    return manager;
  }
  // With the variables of now initialised.
  testing::ScriptedSession* initial() {
    session->run(ops::global_variables_initializer(root));
    return session.get();
  }
  std::string path(const std::string& name) const { return directory.file(name); }
  bool exists(const std::string& name) { return checkpoint_exists(files, path(name)); }
  CheckpointState state() { return read_checkpoint_state(files, directory.path()).state; }

  testing::TemporaryDirectory directory;
  FileSystem& files = FileSystem::real();
  WallClock clock;
  Graph graph;
  Scope root{graph};
  Variable value = ops::variable(root, "value", Tensor::scalar(1.0f));
  std::unique_ptr<testing::ScriptedSession> session = make_scripted_session(graph);
  bool initialised = false;
};

TEST_F(ManagerTest, TheOldestFallsOut) {  // CM-1, CM-8, CM-9
  auto wanted = options();
  wanted.max_to_keep = 3;
  const auto manager = make(wanted);
  for (int n = 1; n <= 4; ++n) EXPECT_EQ(manager->save(*session), path("ckpt-" + std::to_string(n)));
  EXPECT_THAT(manager->checkpoints(), ElementsAre(path("ckpt-2"), path("ckpt-3"), path("ckpt-4")));
  EXPECT_FALSE(exists("ckpt-1"));
  EXPECT_FALSE(files.exists(path("ckpt-4.meta")));
  EXPECT_THAT(read_file(files, path("checkpoint")), HasSubstr("model_checkpoint_path: \"ckpt-4\""));
  for (const int bad : {0, -1}) {
    wanted.max_to_keep = bad;
    EXPECT_THROW(CheckpointManager{wanted}, InvalidArgumentError);
  }
  EXPECT_THROW(CheckpointManager({.saver = {.graph = &graph}}), InvalidArgumentError);
}

TEST_F(ManagerTest, WithoutALimitAllAreKeptAndListedAndALowerOneIsReachedByTheNextSave) {  // CM-2
  std::vector<std::string> all;
  {
    const auto manager = make(options());
    for (int n = 0; n < 3; ++n) {
      clock.wall += 1;
      all.push_back(manager->save(*session));
    }
    EXPECT_EQ(manager->checkpoints(), all);
  }
  {
    const auto manager = make(options());
    EXPECT_EQ(manager->checkpoints(), all);
    clock.wall += 1;
    all.push_back(manager->save(*session));
    EXPECT_EQ(manager->checkpoints(), all);
  }
  auto wanted = options();
  wanted.max_to_keep = 3;
  const auto manager = make(wanted);
  EXPECT_EQ(manager->checkpoints(), all);
  clock.wall += 1;
  manager->save(*session);
  EXPECT_THAT(manager->checkpoints(), ElementsAre(all[2], all[3], path("ckpt-5")));
  EXPECT_FALSE(exists("ckpt-1"));
  EXPECT_FALSE(exists("ckpt-2"));
}

TEST_F(ManagerTest, OneInNHoursIsKeptForGoodAcrossRestarts) {  // CM-3
  auto wanted = options();
  wanted.max_to_keep = 2;
  clock.wall = 3000;
  {
    const auto manager = make(wanted);
    clock.wall = 10000;
    manager->save(*session);
    clock.wall = 10000 + 3610;
    manager->save(*session);
    EXPECT_THAT(state().all_model_checkpoint_timestamps, ElementsAre(10000, 13610));
  }
  wanted.keep_checkpoint_every_n_hours = 1.5;
  const auto manager = make(wanted);
  EXPECT_THAT(manager->checkpoints(), ElementsAre(path("ckpt-1"), path("ckpt-2")));
  double now = 13610;
  const auto save_after = [&](double hours) {
    now += hours * kHourSecs;
    clock.wall = now;
    manager->save(*session);
  };
  save_after(0.2);
  EXPECT_EQ(state().last_preserved_timestamp, 10000);
  EXPECT_TRUE(exists("ckpt-1"));
  save_after(0.5);
  save_after(0.5);
  const double fourth = 13610 + 0.7 * kHourSecs;
  save_after(10 / kHourSecs);
  EXPECT_EQ(state().last_preserved_timestamp, fourth);
  EXPECT_THAT(manager->checkpoints(), ElementsAre(path("ckpt-5"), path("ckpt-6")));
  for (const char* kept : {"ckpt-1", "ckpt-4", "ckpt-5", "ckpt-6"}) EXPECT_TRUE(exists(kept)) << kept;
  for (const char* gone : {"ckpt-2", "ckpt-3"}) EXPECT_FALSE(exists(gone)) << gone;
}

TEST_F(ManagerTest, TheStateIsWrittenOnceAndBeforeAnythingIsDeleted) {  // unlike CM-4
  testing::FaultyFileSystem recorded;
  auto wanted = options();
  wanted.saver.files = &recorded;
  wanted.max_to_keep = 1;
  const auto manager = make(wanted);
  manager->save(*session);
  const size_t before = recorded.operations().size();
  manager->save(*session);
  std::vector<std::string> order;
  const auto operations = recorded.operations();
  for (size_t i = before; i < operations.size(); ++i) {
    if (operations[i].starts_with("rename checkpoint")) order.push_back("state");
    if (operations[i] == "remove ckpt-1.index") order.push_back("removal");
  }
  EXPECT_THAT(order, ElementsAre("state", "removal"));
}

TEST_F(ManagerTest, WhatOthersMadeIsNeitherListedNorDeletedAndTheNumberGoesOn) {  // CM-5
  auto wanted = options();
  wanted.max_to_keep = 2;
  const auto manager = make(wanted);
  Saver plain({.graph = &graph, .name = "plain", .files = &files, .clock = &clock});
  session->run(manager->save_counter().initializer(),
               {{manager->save_counter().initial_value(), Tensor::scalar<int64_t>(2)}});
  clock.wall += 1;
  const std::string first = plain.save(*session, path("unusual_prefix"), 1);
  const std::string second = plain.save(*session, path("unusual_prefix"), 2);
  const auto again = make(wanted);
  EXPECT_THAT(again->checkpoints(), IsEmpty());
  EXPECT_EQ(again->latest_checkpoint(), second);
  const auto fresh = make_scripted_session(graph);
  again->saver().restore(*fresh, *again->latest_checkpoint());
  EXPECT_EQ(fresh->run(again->save_counter()).item<int64_t>(), 2);
  for (int n = 3; n <= 5; ++n) EXPECT_EQ(again->save(*fresh), path("ckpt-" + std::to_string(n)));
  EXPECT_THAT(again->checkpoints(), ElementsAre(path("ckpt-4"), path("ckpt-5")));
  EXPECT_TRUE(exists(base_name(first)) && exists(base_name(second)));
}

TEST_F(ManagerTest, ACopiedDirectoryIsManagedByItself) {
  Saver plain({.graph = &graph, .name = "plain", .files = &files, .clock = &clock});
  clock.wall += 1;
  plain.save(*initial(), path("ckpt"), 1);
  const testing::TemporaryDirectory copy;
  std::filesystem::copy(directory.path(), copy.path());
  auto wanted = options();
  wanted.directory = copy.path();
  EXPECT_THAT(make(wanted)->checkpoints(), ElementsAre(copy.file("ckpt-1")));
  remove_checkpoint(files, copy.file("ckpt-1"));
  EXPECT_THAT(make(wanted)->checkpoints(), IsEmpty());
}

TEST_F(ManagerTest, AClockThatWasSetBackLosesNothing) {  // CM-6
  auto wanted = options();
  wanted.max_to_keep = 1;
  clock.wall = 10000;
  {
    const auto manager = make(wanted);
    clock.wall = 10010;
    manager->save(*session);
    clock.wall = 10020;
    manager->save(*session);
  }
  const LogRecorder log;
  clock.wall = 5000;
  const auto manager = make(wanted);
  EXPECT_THAT(log.text(), HasSubstr("behind the last preserved checkpoint timestamp"));
  EXPECT_THAT(manager->checkpoints(), IsEmpty());
  clock.wall = 5020;
  manager->save(*session);
  EXPECT_TRUE(exists("ckpt-2"));
  EXPECT_EQ(state().last_preserved_timestamp, 5000);
  EXPECT_THAT(state().all_model_checkpoint_timestamps, ElementsAre(5020));
}

TEST_F(ManagerTest, TheNumberCanBeTheCallers) {  // CM-7
  const Variable number = ops::variable(root, "number", Tensor::scalar<int64_t>(0));
  auto wanted = options();
  wanted.max_to_keep = 2;
  const auto manager = make(wanted);
  const Output two_more = ops::assign_add(root, number, ops::constant(root, int64_t{2}));
  for (int n = 0; n < 5; ++n) {
    EXPECT_EQ(manager->save(*session, number), path("ckpt-" + std::to_string(2 * n)));
    session->run(two_more);
  }
  EXPECT_EQ(session->run(manager->save_counter()).item<int64_t>(), 5);
  EXPECT_EQ(manager->save(*session, 32), path("ckpt-32"));
  EXPECT_EQ(manager->latest_checkpoint(), path("ckpt-32"));
  EXPECT_THAT(state().all_model_checkpoint_paths, ElementsAre(path("ckpt-8"), path("ckpt-32")));
}

TEST_F(ManagerTest, TheNameCanBeTheCallers) {  // CM-8
  auto wanted = options();
  wanted.checkpoint_name = "ckpt_name";
  const auto manager = make(wanted);
  EXPECT_EQ(manager->save(*session, 5), path("ckpt_name-5"));
}

}  // namespace
}  // namespace longhaul
