#include <filesystem>

#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// Trainings with a mirror, on machines that may be lost.
class MirroredTraining : public SupervisorFixture {
 protected:
  MirroredTraining() {
    add_step();
    options.save_model_secs = Seconds{0};
    options.save_summaries_secs = Seconds{0};
    options.chief.mirror.directory = place.file("mirror");
  }
  // Returns the step that it began with.
  int64_t train_steps(int count, const SupervisorOptions& with) {
    int64_t first = -1;
    Supervisor sv(with);
    sv.managed_session([&](Session& session) {
      first = session.run(step).item<int64_t>();
      for (int i = 0; i < count; ++i) session.run(train);
    });
    status = sv.mirror_status();
    return first;
  }
  // Another machine goes on: the disk of this one is gone.
  void lose_machine() {
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) std::filesystem::remove(entry);
    restart();
  }
  std::string own(int step) { return directory.file(fmt::format("model.ckpt-{}", step)); }
  std::string mirrored(int step) { return options.chief.mirror.directory + fmt::format("/model.ckpt-{}", step); }

  testing::TemporaryDirectory place;
  SaveStatus status;
};

TEST_F(MirroredTraining, ASupervisorMirrorsItsLastCheckpoint) {
  EXPECT_EQ(train_steps(3, options), 0);
  EXPECT_TRUE(exists(own(3)));
  EXPECT_TRUE(exists(mirrored(3)));
  EXPECT_EQ(status.last_prefix, mirrored(3));
}

TEST_F(MirroredTraining, ASupervisorGoesOnFromTheMirrorOnAFreshMachine) {
  train_steps(3, options);
  lose_machine();
  EXPECT_EQ(train_steps(2, options), 3);
  EXPECT_TRUE(exists(own(5)));
  EXPECT_TRUE(exists(mirrored(5)));
}

TEST_F(MirroredTraining, ItsDirectoryGetsTheCheckpointThatOnlyTheMirrorHad) {
  train_steps(3, options);
  lose_machine();
  options.save_model_secs = Seconds{600};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    EXPECT_EQ(session.run(step).item<int64_t>(), 3);
    eventually([&] { return exists(own(3)); });
  });
}

TEST_F(MirroredTraining, WhatTheProgramSavesItselfIsMirroredToo) {
  options.services.save_at_end = false;
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    session.run(train);
    sv.saver()->save(session, sv.save_path(), sv.global_step());
    eventually([&] { return exists(mirrored(1)); });
  });
}

TEST_F(MirroredTraining, WhatAKillKeptFromTheMirrorIsThereAfterTheRestart) {
  SupervisorOptions without = options;
  without.chief.mirror.directory.clear();
  train_steps(3, without);
  restart();
  options.services.save_at_end = false;
  EXPECT_EQ(train_steps(0, options), 3);
  EXPECT_TRUE(exists(mirrored(3)));
}

TEST_F(MirroredTraining, AMirrorThatFailsDisturbsNothing) {
  write_file_atomically(FileSystem::real(), options.chief.mirror.directory, "no directory");
  options.chief.mirror.end_timeout = Seconds{0};
  EXPECT_EQ(train_steps(3, options), 0);
  EXPECT_TRUE(exists(own(3)));
  restart();
  EXPECT_EQ(train_steps(0, options), 3);
}

TEST_F(MirroredTraining, AMirrorWithoutALogdirIsRefused) {
  options.logdir.clear();
  EXPECT_THAT(error_of([&] { Supervisor sv(options); }), HasSubstr("has nothing to mirror: set logdir"));
}

TEST_F(MirroredTraining, TheMirrorIsKeptByItsOwnRule) {
  options.chief.mirror.max_to_keep = 1;
  for (int i = 0; i < 3; ++i) {
    train_steps(1, options);
    restart();
  }
  EXPECT_FALSE(exists(mirrored(2)));
  EXPECT_TRUE(exists(mirrored(3)));
  EXPECT_TRUE(exists(own(1)));
  EXPECT_EQ(latest_checkpoint(FileSystem::real(), options.chief.mirror.directory), mirrored(3));
}

}  // namespace
}  // namespace longhaul
