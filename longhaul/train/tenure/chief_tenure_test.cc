#include "longhaul/train/tenure/chief_tenure.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/coordination/teardown.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/signals/stop_signals.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ChiefTenureTest : public ::testing::Test {
 protected:
  ChiefTenureTest() { options = {.directory = directory.path(), .clock = &clock}; }

  bool is_locked() { return FileSystem::real().exists(owner_path(directory.path())); }
  RunHistory::Sums sums() {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history.sums();
  }
  // Steps that note that they were called; those of which `fails` throw their name.
  TrainingEnd steps(const std::function<bool(const std::string&)>& fails = [](auto&) { return false; }) {
    const auto step = [this, fails](const char* name) {
      return [this, fails, name = std::string(name)] {
        called.push_back(name);
        locked_at_each &= is_locked();
        if (fails(name)) throw InternalError(name);
      };
    };
    return {.hooks = step("hooks"),
            .threads = step("threads"),
            .last_checkpoint = step("checkpoint"),
            .unsaved_steps =
                [count = step("unsaved")] {
                  count();
                  return std::optional<UnsavedSteps>();
                },
            .events = step("events"),
            .session = step("session")};
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  ChiefTenureOptions options;
  std::vector<std::string> called;
  bool locked_at_each = true;
};

TEST_F(ChiefTenureTest, HeldItHasTheDirectoryAndAJournal) {
  ChiefTenure tenure(options);
  EXPECT_FALSE(is_locked());
  EXPECT_EQ(tenure.journal(), nullptr);
  tenure.begin({});
  const auto journal = tenure.journal();
  EXPECT_TRUE(is_locked());
  ASSERT_NE(journal, nullptr);
  tenure.begin({});
  EXPECT_EQ(tenure.journal(), journal) << "it is held already";
  Teardown end;
  tenure.end(end);
  EXPECT_NO_THROW(end.raise_error());
  EXPECT_FALSE(is_locked());
  EXPECT_EQ(tenure.journal(), nullptr);
  EXPECT_EQ(sums().phase, RunHistory::Phase::kStopped);
  EXPECT_EQ(sums().interruptions, 0);
}

TEST_F(ChiefTenureTest, WhoeverStartsTheProgramMayAskForAPage) {
  ::setenv("LONGHAUL_STATUS_ADDRESS", "8080", 1);
  EXPECT_THAT(refusal_of([&] { ChiefTenure tenure(options); }), HasSubstr("LONGHAUL_STATUS_ADDRESS is \"8080\""));
  ::setenv("LONGHAUL_STATUS_ADDRESS", "127.0.0.1:0", 1);
  const LogRecorder log;
  ChiefTenure tenure(options);
  tenure.begin({});
  ::unsetenv("LONGHAUL_STATUS_ADDRESS");
  EXPECT_THAT(log.text(LogLevel::kInfo), HasSubstr("http://127.0.0.1:"));
}

TEST_F(ChiefTenureTest, SaysOnceThatNothingTurnsSigtermIntoAStop) {
  const std::string notice = "no StopSignals or Preemption: SIGTERM ends this process without a checkpoint\n";
  options.chief.keep_journal = false;
  const LogRecorder log;
  ChiefTenure tenure(options);
  for (int i = 0; i < 2; ++i) {
    tenure.begin({});
    tenure.begin({});
    Teardown end;
    tenure.end(end);
  }
  const std::string told = log.text(LogLevel::kInfo);
  EXPECT_THAT(told, HasSubstr(notice));
  EXPECT_EQ(told.find(notice), told.rfind(notice)) << told;
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr(notice)));
}

TEST_F(ChiefTenureTest, DoesNotSpeakOfSigtermWhereItStopsTrainingOrNothingIsSaved) {
  const LogRecorder log;
  ChiefTenure(ChiefTenureOptions{.clock = &clock}).begin({});
  {
    const Preemption preemption;
    ChiefTenure(options).begin({});
  }
  const StopSignals signals(Coordinator{});
  ChiefTenure(options).begin({});
  EXPECT_THAT(log.text(), Not(HasSubstr("SIGTERM")));
}

TEST_F(ChiefTenureTest, TheJournalLearnsWhereTheModelIsFromAndWhySomethingIsSkipped) {
  for (int i = 0; i < 2; ++i) {
    ChiefTenure tenure(options);
    tenure.begin({});
    EXPECT_EQ(tenure.skip_reason("model.ckpt-7"), std::nullopt);
    tenure.recovered(directory.file("model.ckpt-7"));
    Teardown end(std::make_exception_ptr(InternalError("a bug")));
    tenure.end(end);
  }
  EXPECT_EQ(sums().restored, "model.ckpt-7");
  ChiefTenure tenure(options);
  EXPECT_EQ(tenure.skip_reason("model.ckpt-7"), std::nullopt) << "it is not held";
  tenure.begin({});
  const auto reason = tenure.skip_reason("model.ckpt-7");
  ASSERT_TRUE(reason);
  EXPECT_THAT(reason->why, HasSubstr("restored from it failed"));
  EXPECT_FALSE(reason->is_doubtful);
}

// So that a rollback on a full disk ends nothing, and no other chief comes between.
TEST_F(ChiefTenureTest, ASessionThatAnotherOneFollowsLeavesTheDirectoryLockedAndTheJournalOpen) {
  ChiefTenure tenure(options);
  tenure.begin({});
  std::vector<std::string> ended;
  Teardown end;
  tenure.end_session(end,
                     {.hooks = [&] { ended.push_back("hooks"); },
                      .threads = [&] { ended.push_back("threads"); },
                      .last_checkpoint = [&] { ended.push_back("last checkpoint"); },
                      .events = [&] { ended.push_back("events"); },
                      .session = [&] { ended.push_back("session"); }},
                     "it goes back");
  EXPECT_THAT(ended, ElementsAre("threads", "events", "session"));
  EXPECT_TRUE(tenure.is_kept());
  EXPECT_NE(tenure.journal(), nullptr);
  EXPECT_THROW(ChiefTenure(options).begin({}), DirectoryLockedError);
  tenure.begin({});
  EXPECT_FALSE(tenure.is_kept());
  Teardown last;
  tenure.end(last);
  EXPECT_EQ(sums().runs, 1) << "one run";
}

// The steps of an end that calls these of the front end.
std::vector<std::string> all_steps_of(const std::vector<std::string>& called) {
  std::vector<std::string> steps{
      "the hooks",      "the threads",    "the last checkpoint", "the count of unsaved steps",
      "the event file", "the event file", "the mirror",          "the session",
      "the journal",    "the lock"};
  const bool saves = std::find(called.begin(), called.end(), "checkpoint") != called.end();
  if (!saves) std::erase(steps, "the last checkpoint");
  return steps;
}

TEST_F(ChiefTenureTest, EndsInOneOrderWhateverFails) {
  const std::vector<std::string> all{"hooks", "threads", "checkpoint", "unsaved", "events", "session"};
  for (size_t failing = 0; failing < (size_t{1} << all.size()); ++failing) {
    const auto fails = [&](const std::string& name) {
      const auto found = std::find(all.begin(), all.end(), name);
      return ((failing >> (found - all.begin())) & 1) == 1;
    };
    std::vector<std::string> expected;
    std::string first;
    for (const std::string& name : all) {
      if (name == "checkpoint" && !first.empty()) continue;
      expected.push_back(name);
      if (fails(name) && first.empty()) first = name;
    }
    called.clear();
    ChiefTenure tenure(options);
    tenure.begin({});
    Teardown end;
    tenure.end(end, steps(fails));
    EXPECT_EQ(called, expected);
    EXPECT_EQ(end.steps(), all_steps_of(expected)) << "one more? Let it fail here and in tenure_end_test.cc, too";
    EXPECT_TRUE(locked_at_each) << "the directory is given back last";
    EXPECT_EQ(message_of(end.error()), first);
    EXPECT_FALSE(is_locked());
    EXPECT_EQ(sums().phase, RunHistory::Phase::kStopped);
    EXPECT_EQ(sums().stop_requested, false);
  }
  EXPECT_EQ(sums().interruptions, 63) << "all but one run had an error";
}

TEST_F(ChiefTenureTest, AfterAnErrorNobodyHasALastWordAndNothingIsSaved) {
  ChiefTenure tenure(options);
  tenure.begin({});
  Teardown end(std::make_exception_ptr(InternalError("a bug")));
  tenure.end(end, steps());
  EXPECT_THAT(called, ElementsAre("threads", "unsaved", "events", "session"));
  EXPECT_EQ(message_of(end.error()), "a bug");
  EXPECT_EQ(sums().interruptions, 1);
}

TEST_F(ChiefTenureTest, EndsOnce) {
  ChiefTenure tenure(options);
  tenure.begin({});
  Teardown first, second;
  tenure.end(first);
  clock.advance(Seconds{100});
  const double until = sums().until;
  tenure.end(second);
  EXPECT_EQ(sums().until, until);
  EXPECT_EQ(sums().runs, 1);
}

TEST_F(ChiefTenureTest, APreemptionLeavesTheThreadsWhatTheLastCheckpointDoes) {
  Preemption preemption({.clock = &clock});
  options.chief.preemption = &preemption;
  preemption.preempt();
  ChiefTenure tenure(options);
  tenure.begin({});
  Teardown end;
  tenure.end(end, steps());
  EXPECT_THAT(called, ElementsAre("hooks", "threads", "checkpoint", "threads", "unsaved", "events", "session"));
}

TEST_F(ChiefTenureTest, OneThatNobodyEndsIsARunThatWasAborted) {
  {
    ChiefTenure(options).begin({});
  }
  EXPECT_FALSE(is_locked());
  EXPECT_EQ(sums().interruptions, 1);
  EXPECT_EQ(sums().phase, RunHistory::Phase::kStopped);
}

TEST_F(ChiefTenureTest, ARunThatHasFailedIsNotedAsThatWhateverFollows) {
  ChiefTenure tenure(options);
  tenure.begin({});
  tenure.failed(std::make_exception_ptr(InternalError("there is no device")));
  EXPECT_TRUE(is_locked());
  Teardown end;
  tenure.end(end);
  EXPECT_EQ(sums().interruptions, 1);
}

TEST_F(ChiefTenureTest, ALockThatCannotBeGivenBackEndsItAllTheSameWhateverIsThrown) {
  struct OfAProgramsFiles {};
  for (const bool is_odd : {false, true}) {
    const LogRecorder log;
    BadDisk disk;
    disk.before_remove = [&](const std::string& path) {
      if (path != owner_path(directory.path())) return;
      if (is_odd) throw OfAProgramsFiles();
      throw UnavailableError("the server does not answer");
    };
    options.files = &disk;
    ChiefTenure tenure(options);
    tenure.begin({});
    Teardown end;
    tenure.end(end, steps());
    EXPECT_EQ(end.error(), nullptr);
    EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("chief.owner could not be removed"));
    EXPECT_TRUE(is_locked()) << "the record is there, of no chief";
    disk.before_remove = nullptr;
    EXPECT_NO_THROW(tenure.begin({}));
  }
}

// A disk without permission to create files.
class ReadOnlyDisk : public BadDisk {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists) override {
    throw PermissionDeniedError("create " + path + ": Permission denied");
  }
};

TEST_F(ChiefTenureTest, ADirectoryThatCannotBeWrittenIsNamedWithItsOptionAndWithoutATemporaryFile) {
  ReadOnlyDisk disk;
  options.files = &disk;
  options.directory_option = "checkpoint_dir";
  ChiefTenure tenure(options);
  EXPECT_EQ(error_of([&] { tenure.begin({}); }),
            "checkpoint_dir " + directory.path() + " cannot be written to: create a file in it: Permission denied");
  EXPECT_TRUE(tenure.is_refused());
}

TEST_F(ChiefTenureTest, TellsHowManyStepsARecoveryHasLost) {
  const auto told = [&](const std::string& restored, bool was_there) {
    const LogRecorder log;
    ChiefTenure tenure(options);
    tenure.begin({});
    tenure.recovered(restored, was_there);
    tenure.journal()->training(7);
    tenure.journal()->mark(30);
    Teardown end;
    tenure.end(end);
    return log.text(LogLevel::kWarning);
  };
  EXPECT_THAT(told("", /*was_there=*/false), Not(HasSubstr("are lost")));
  EXPECT_THAT(told("model.ckpt-7", /*was_there=*/false), HasSubstr("23 steps are lost, and are made again"));
  EXPECT_THAT(told("", /*was_there=*/false), HasSubstr("30 steps are lost"));
  EXPECT_THAT(told("", /*was_there=*/true), Not(HasSubstr("are lost")));
}

class LostTimeTest : public ChiefTenureTest {
 protected:
  // A run that comes to step 30, and has to leave its session 3.2 s later.
  void lose_a_session() {
    ChiefTenure tenure(options);
    tenure.begin({});
    tenure.recovered("");
    tenure.journal()->training(7);
    clock.advance(Seconds{4});
    tenure.journal()->mark(30);
    clock.advance(Seconds{3.2});
    tenure.journal()->interrupted(std::nullopt);
    clock.advance(Seconds{60});
    Teardown end(std::make_exception_ptr(AbortedError("the session is lost")));
    tenure.end(end);
  }
  void be_killed() {
    RunJournal journal(directory.path(), {.clock = &clock});
    journal.begin();
    journal.initialised(std::nullopt);
    journal.training(7);
    journal.mark(30);
  }
  std::string told(const std::string& restored, bool was_there = false) {
    const LogRecorder log;
    ChiefTenure tenure(options);
    tenure.begin({});
    tenure.recovered(restored, was_there);
    Teardown end;
    tenure.end(end);
    return log.text(LogLevel::kWarning);
  }
};

TEST_F(LostTimeTest, IsToldWhereTheStepsAreNotKnown) {
  lose_a_session();
  EXPECT_THAT(told("model.ckpt-30"), HasSubstr("the steps made after step 30 in up to 3.2 s of training are lost, and "
                                               "are made again: continues from model.ckpt-30\n"));
  EXPECT_THAT(told("model.ckpt-30"), Not(HasSubstr("are lost"))) << "it was told";
}

TEST_F(LostTimeTest, IsToldWithTheStepsThatAreKnown) {
  lose_a_session();
  EXPECT_THAT(told("model.ckpt-7"),
              HasSubstr("23 steps, and the steps made after step 30 in up to 3.2 s of training, are lost, and are made "
                        "again: continues from model.ckpt-7\n"));
}

TEST_F(LostTimeTest, IsThatOfAMarkIfTheProcessWasKilled) {
  be_killed();
  clock.advance(Seconds{3600});
  EXPECT_THAT(told("model.ckpt-30"), HasSubstr("after step 30 in up to 5 s of training are lost"));
  be_killed();
  clock.advance(Seconds{2});
  EXPECT_THAT(told("model.ckpt-30"), HasSubstr("after step 30 in up to 2 s of training are lost"));
}

TEST_F(LostTimeTest, IsNotLostIfTheModelLives) {
  lose_a_session();
  EXPECT_THAT(told("", /*was_there=*/true), Not(HasSubstr("are lost")));
}

TEST_F(ChiefTenureTest, TheJournalLearnsHowMuchOfTheTrainingIsInNoCheckpoint) {
  const LogRecorder log;
  ChiefTenure tenure(options);
  tenure.begin({});
  tenure.recovered("");
  tenure.journal()->training(0);
  clock.advance(Seconds{100});
  tenure.journal()->mark(10);
  Teardown end;
  tenure.end(end, {.unsaved_steps = [] { return UnsavedSteps{.first = 8, .last = 10, .share = 0.25}; }});
  EXPECT_THAT(log.text(), HasSubstr("75.0 % goodput, 25.0 % in no checkpoint"));
}

TEST_F(ChiefTenureTest, NothingIsMirroredAfterItsEndAndNothingOfTheMirrorIsKept) {
  Graph graph;
  Scope root(graph);
  ops::variable(root, "v", Tensor::scalar(1.0f));
  Saver saver({.graph = &graph, .clock = &clock});
  const auto session = make_scripted_session(graph);
  session->run(ops::global_variables_initializer(root));
  const testing::TemporaryDirectory mirror;
  const auto attempts = default_mirror_attempts(clock);
  options.chief.mirror = {.directory = mirror.path(), .attempts = attempts};
  ChiefTenure tenure(options);
  const long owners = attempts.use_count();
  tenure.begin({});
  tenure.mirror_saves_of(saver);
  EXPECT_GT(attempts.use_count(), owners) << "the mirror's";
  Teardown end;
  tenure.end(end);
  EXPECT_EQ(attempts.use_count(), owners);
  saver.save(*session, directory.file("model.ckpt"), 1);
  EXPECT_EQ(attempts.use_count(), owners);
  EXPECT_THAT(FileSystem::real().list(mirror.path()), IsEmpty());
}

TEST_F(ChiefTenureTest, ASecondOneIsRefusedUntilTheFirstHasEnded) {
  ChiefTenure first(options), second(options);
  first.begin({});
  EXPECT_FALSE(second.is_refused());
  EXPECT_THROW(second.begin({}), DirectoryLockedError);
  EXPECT_TRUE(second.is_refused());
  Teardown end, other_end;
  second.end(other_end);
  EXPECT_TRUE(is_locked());
  first.end(end);
  second.begin({});
  EXPECT_FALSE(second.is_refused());
}

TEST_F(ChiefTenureTest, ALaterOneDoesNotBeginInADirectoryThatIsGone) {
  ChiefTenure tenure(options);
  tenure.begin({});
  Teardown end;
  tenure.end(end);
  std::filesystem::remove_all(directory.path());
  EXPECT_THROW(tenure.begin({}), DirectoryAwayError);
  EXPECT_TRUE(tenure.is_refused());
  EXPECT_FALSE(FileSystem::real().exists(directory.path()));
}

TEST_F(ChiefTenureTest, WhereThereIsNothingToBeTheChiefOfTheRestEndsAllTheSame) {
  options.directory.clear();
  ChiefTenure tenure(options);
  tenure.begin({});
  EXPECT_EQ(tenure.journal(), nullptr);
  Teardown end;
  tenure.end(end, steps());
  EXPECT_THAT(called, ElementsAre("hooks", "threads", "checkpoint", "unsaved", "events", "session"));
  EXPECT_THAT(FileSystem::real().list(directory.path()), IsEmpty());
}

TEST_F(ChiefTenureTest, AMirrorWithANegativeNumberIsRefused) {
  for (const auto& set : {+[](MirrorOptions& mirror) { mirror.max_to_keep = -1; },
                          +[](MirrorOptions& mirror) { mirror.keep_checkpoint_every_n_hours = -1; },
                          +[](MirrorOptions& mirror) { mirror.max_bytes_per_second = std::nan(""); },
                          +[](MirrorOptions& mirror) { mirror.end_timeout = Seconds{-1}; },
                          +[](MirrorOptions& mirror) { mirror.start_timeout = Seconds{-1}; }}) {
    options.chief.mirror = {.directory = directory.file("mirror")};
    set(options.chief.mirror);
    EXPECT_THAT(error_of([&] { ChiefTenure tenure(options); }), HasSubstr("must be 0 or more"));
  }
}

TEST_F(ChiefTenureTest, AMirrorWhoseLeaseIsTooShortForItsHeartbeatsIsRefused) {
  options.chief.mirror = {.directory = directory.file("mirror"), .lock = {.lease_secs = Seconds{1e-4}}};
  EXPECT_THAT(error_of([&] { ChiefTenure tenure(options); }), HasSubstr("mirror.lock.lease_secs is 0.0001 s"));
  options.chief.mirror.lock.lock = false;
  EXPECT_THAT(error_of([&] { ChiefTenure tenure(options); }), IsEmpty());
}

TEST_F(ChiefTenureTest, AMirrorWithoutADirectoryIsWarnedOfIfItHasOptions) {
  const LogRecorder log;
  options.chief.mirror = {};
  {
    ChiefTenure tenure(options);
  }
  EXPECT_THAT(log.text(), Not(HasSubstr("nothing is mirrored")));
  options.chief.mirror = {.max_to_keep = 2};
  {
    ChiefTenure tenure(options);
  }
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("mirror.directory is empty, so nothing is mirrored"));
}

TEST_F(ChiefTenureTest, AMirrorInTheDirectoryItselfIsRefused) {
  options.chief.mirror.directory = directory.path() + "/";
  EXPECT_THAT(error_of([&] { ChiefTenure tenure(options); }), HasSubstr("same directory"));
}

}  // namespace
}  // namespace longhaul
