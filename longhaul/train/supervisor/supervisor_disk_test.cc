#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A training whose checkpoints go to a disk of their own, which becomes full.
class SupervisorsFullDisk : public SupervisorFixture {
 protected:
  SupervisorsFullDisk() {
    add_step();
    options.files = &files;
    options.summary_writer = &writer;
  }
  // The body of a training that has one checkpoint, and whose disk is full when the next is due.
  void fill_up(Supervisor& sv, Session& session) {
    eventually([&] { return sv.save_status().last_prefix == sv.save_path() + "-0"; });
    session.run(train);
    files.fail_writes_after(0);
    clock.advance(Seconds{600});
  }
  std::vector<std::string> failed_saves() {
    std::vector<std::string> lines = described_events();
    std::erase_if(lines, [](const std::string& line) { return line.find("failed_saves") == line.npos; });
    return lines;
  }

  testing::FaultyFileSystem files;
  FileWriter writer{directory.path()};
};

TEST_F(SupervisorsFullDisk, DoesNotEndTheTrainingAndTheSaveIsTriedAgainSoon) {
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    fill_up(sv, session);
    eventually([&] { return sv.save_status().consecutive_failures == 1; });
    EXPECT_THAT(sv.save_status().last_error, HasSubstr("No space left"));
    EXPECT_FALSE(sv.should_stop());
    files.heal();
    clock.advance(Seconds{1});
    eventually([&] { return sv.save_status().last_prefix == sv.save_path() + "-1"; });
    EXPECT_EQ(sv.save_status().consecutive_failures, 0);
  });
  EXPECT_TRUE(exists(sv.save_path() + "-1"));
  EXPECT_THAT(failed_saves(),
              ElementsAre("summary checkpoint/failed_saves=1 @1", "summary checkpoint/failed_saves=0 @1"));
}

TEST_F(SupervisorsFullDisk, EndsTheTrainingThatIsToldSo) {
  options.services.saves.max_failed_saves = 2;
  Supervisor sv(options);
  const std::string error = error_of([&] {
    sv.managed_session([&](Session& session) {
      fill_up(sv, session);
      eventually([&] { return sv.save_status().consecutive_failures == 1; });
      clock.advance(Seconds{1});
      sv.wait_for_stop();
    });
  });
  EXPECT_THAT(error, HasSubstr("2 saves in a row failed (max_failed_saves = 2), the last one with: "));
  EXPECT_TRUE(exists(sv.save_path() + "-0"));
}

TEST_F(SupervisorsFullDisk, AtTheEndIsAnErrorAfterSomeAttempts) {
  testing::FakeClock passing{testing::FakeClock::Waits::kPassTime};
  options.clock = &passing;
  options.save_model_secs = Seconds{0};
  options.chief.lock.lock = false;  // whose heart would beat without pause on this clock
  options.save_summaries_secs = Seconds{0};
  Supervisor sv(options);
  const std::string error = error_of([&] {
    sv.managed_session([&](Session& session) {
      session.run(train);
      files.fail_writes_after(0);
    });
  });
  EXPECT_THAT(error, HasSubstr("the last checkpoint could not be saved: "));
  EXPECT_GT(sv.save_status().consecutive_failures, 2);
}

class SupervisorsDisk : public SupervisorFixture {
 protected:
  Variable v = ops::variable(root, "foo", Tensor::scalar(1.0f));
};

TEST_F(SupervisorsDisk, ThatDoesNotTellItsRoomIsNoError) {
  class Silent : public testing::FaultyFileSystem {
    uint64_t free_bytes(const std::string& path) override { throw UnimplementedError("statvfs " + path); }
  } silent;
  options.files = &silent;
  options.save_model_secs = Seconds{0};
  options.services.save_at_end = false;
  const LogRecorder log;
  Supervisor sv(options);
  EXPECT_NO_THROW(sv.managed_session([](Session&) {}));
  EXPECT_THAT(log.text(), HasSubstr("the free disk space for checkpoints is unknown: statvfs"));
}

TEST_F(SupervisorsDisk, IsComparedWithWhatACheckpointTakes) {
  class SmallDisk : public testing::FaultyFileSystem {
    uint64_t free_bytes(const std::string&) override { return 7; }
  } small;
  const LogRecorder log;
  Supervisor roomy(options);
  roomy.managed_session([](Session&) {});
  EXPECT_THAT(log.text(), HasSubstr("A checkpoint of 1 variables takes 4 bytes in " + directory.path()));
  EXPECT_THAT(log.text(), Not(HasSubstr("make room")));
  options.files = &small;
  options.services.save_at_end = false;
  Supervisor cramped(options);
  cramped.managed_session([](Session&) {});
  EXPECT_THAT(log.text(), HasSubstr("make room"));
}

}  // namespace
}  // namespace longhaul
