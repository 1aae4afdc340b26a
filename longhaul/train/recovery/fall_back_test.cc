#include "longhaul/train/recovery/fall_back.h"

#include <filesystem>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/recovery/fall_back_fixture.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(FallBackTest, ADamagedOneIsRenamedAndNeverTriedAgain) {
  lock();
  damage(prefixes[2]);
  const LogRecorder first;
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(first.text(LogLevel::kError), AllOf(HasSubstr(prefixes[2]), HasSubstr("Checksum")));
  EXPECT_THAT(first.text(), HasSubstr(prefixes[2] + ".index.corrupt"));
  EXPECT_THAT(corrupt(), ElementsAre("model-3"));
  EXPECT_FALSE(checkpoint_exists(FileSystem::real(), prefixes[2]));
  restart();
  const LogRecorder second;
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(second.text(LogLevel::kWarning), Not(HasSubstr("model-3")));
}

TEST_F(FallBackTest, WhoHasNotLockedTheDirectoryRenamesNothing) {
  damage(prefixes[2]);
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(corrupt(), IsEmpty());
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), prefixes[2]));
}

TEST_F(FallBackTest, WhereAllAreDamagedAllStayAndTheNextRestartSaysSoToo) {
  lock();
  for (const std::string& prefix : prefixes) damage(prefix);
  for (int i = 0; i < 2; ++i) EXPECT_THAT(error_of([&] { restored(); }), HasSubstr("all checkpoints in")) << i;
  EXPECT_THAT(corrupt(), IsEmpty());
}

TEST_F(FallBackTest, OneThatDoesNotFitRenamesNothing) {
  lock();
  damage(prefixes[2]);
  Graph other;
  const Variable wide = ops::variable(Scope(other), "v", Tensor::of<float>({1, 2}));
  Saver other_saver({.graph = &other});
  const auto session = make_scripted_session(other);
  EXPECT_THROW(restore_newest_intact(other_saver, *session, {.directory = directory.path()}), InvalidArgumentError);
  EXPECT_THAT(corrupt(), IsEmpty()) << "not even the damaged one: nobody knows yet whether there is another";
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), prefixes[1]));
}

TEST_F(FallBackTest, OneThatLacksADataFileIsDamagedToo) {
  lock();
  std::filesystem::remove(data_path(prefixes[2], 0, 1));
  const LogRecorder log;
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(log.text(LogLevel::kError), AllOf(HasSubstr(prefixes[2]), HasSubstr("data files are missing")));
  EXPECT_THAT(corrupt(), ElementsAre("model-3"));
}

TEST_F(FallBackTest, WhereOnlyIncompleteOnesAreLeftTrainingDoesNotStartAfresh) {
  for (const std::string& prefix : prefixes) std::filesystem::remove(data_path(prefix, 0, 1));
  EXPECT_THAT(error_of([&] { restored(); }), HasSubstr("all checkpoints in"));
}

TEST_F(FallBackTest, AnEmptyIndexIsDamage) {
  lock();
  write_file_atomically(FileSystem::real(), index_path(prefixes[2]), "");
  EXPECT_EQ(restored(), 2);
  EXPECT_THAT(corrupt(), ElementsAre("model-3"));
}

TEST_F(FallBackTest, TheLastFewOfThoseRenamedStay) {
  lock();
  prefixes.push_back(save(4, 4));
  for (int i = 1; i < 4; ++i) damage(prefixes[static_cast<size_t>(i)]);
  EXPECT_EQ(restored(), 1);
  EXPECT_THAT(corrupt(), SizeIs(kCorruptSetsKept));
}

TEST_F(FallBackTest, AfterACrashBetweenTheRenamesTheRestIsRenamed) {
  lock();
  std::filesystem::rename(index_path(prefixes[2]), index_path(prefixes[2]) + ".corrupt");
  EXPECT_EQ(restored(), 2);
  EXPECT_TRUE(std::filesystem::exists(data_path(prefixes[2], 0, 1) + ".corrupt"));
  EXPECT_FALSE(std::filesystem::exists(data_path(prefixes[2], 0, 1)));
}

TEST_F(FallBackTest, AStateFileThatIsOfNoUseIsNoObstacle) {
  for (const char* text : {"", "\xff\xfe garbage {", "model_checkpoint_path: \"elsewhere/model-9\"\n"}) {
    write_state(text);
    EXPECT_EQ(restored(), 3) << text;
    restart();
  }
  std::filesystem::remove(directory.file("checkpoint"));
  EXPECT_EQ(restored(), 3);
}

TEST_F(FallBackTest, AStateFileThatWasEditedWins) {
  write_state("model_checkpoint_path: \"model-1\"\n");
  EXPECT_EQ(restored(), 1);
}

TEST_F(FallBackTest, OneThatWasEditedToNameADamagedOneIsNoObstacleEither) {
  lock();
  damage(prefixes[0]);
  write_state("model_checkpoint_path: \"model-1\"\n");
  EXPECT_EQ(restored(), 3);
  EXPECT_THAT(corrupt(), ElementsAre("model-1"));
}

TEST_F(FallBackTest, ARecoveredSessionFallsBackToo) {
  lock();
  damage(prefixes[2]);
  const RecoveredSession recovered = manager().recover_session(prepare);
  EXPECT_TRUE(recovered.initialized);
  EXPECT_EQ(value(*recovered.session, v), 2);
  EXPECT_THAT(corrupt(), ElementsAre("model-3"));
}

TEST_F(FallBackTest, ThoseRenamedAreManagedNoMore) {
  lock();
  damage(prefixes[2]);
  Saver restarted({.graph = &graph, .name = "restarted"});
  prepare.saver = &restarted;
  restored();
  EXPECT_THAT(restarted.last_checkpoints(), ElementsAre(prefixes[0], prefixes[1]));
}

TEST_F(FallBackTest, AStateFileWhoseCheckpointsAreAllGoneIsWarnedOf) {
  for (const std::string& prefix : prefixes) remove_checkpoint(FileSystem::real(), prefix);
  const LogRecorder log;
  EXPECT_EQ(restored(), 2) << "the initial value";
  EXPECT_THAT(log.text(LogLevel::kWarning),
              AllOf(HasSubstr(directory.file("checkpoint") + " names 3 checkpoints, but none of them exists"),
                    HasSubstr("model-3"), HasSubstr("bring them back")));
}

TEST_F(FallBackTest, StepsThatTheJournalKnowsAndNoCheckpointHasAreWarnedOf) {
  for (const std::string& name : FileSystem::real().list(directory.path())) {
    std::filesystem::remove(directory.file(name));
  }
  RunJournal journal(directory.path(), {.clock = &clock});
  journal.begin();
  journal.initialised(std::nullopt);
  journal.training(1);
  journal.mark(9);
  journal.ended();
  const LogRecorder log;
  EXPECT_EQ(restored(), 2) << "the initial value";
  EXPECT_THAT(log.text(LogLevel::kWarning),
              AllOf(HasSubstr("run.journal records steps up to 9"), HasSubstr("has no checkpoint: training starts")));
}

TEST_F(FallBackTest, AFreshDirectoryIsNotWarnedOf) {
  for (const std::string& name : FileSystem::real().list(directory.path())) {
    std::filesystem::remove(directory.file(name));
  }
  const LogRecorder log;
  restored();
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
}

TEST_F(FallBackTest, CheckpointsOfV1AreRefusedAlsoInShards) {
  const std::string table = read_file(FileSystem::real(), index_path(prefixes[0]));
  for (const std::string& prefix : prefixes) remove_checkpoint(FileSystem::real(), prefix);
  const auto refuses = [&](const std::string& file) {
    write_file_atomically(FileSystem::real(), directory.file(file), table);
    EXPECT_THROW(restored(), UnimplementedError) << file;
    restart();
  };
  write_state("model_checkpoint_path: \"model-3000-?\?\?\?\?-of-00001\"\n");
  refuses("model-3000-00000-of-00001");
  write_state("model_checkpoint_path: \"model-3000\"\n");
  EXPECT_THROW(restored(), UnimplementedError);
  std::filesystem::remove(directory.file("checkpoint"));
  restart();
  refuses("model-3000-00000-of-00001");
  std::filesystem::remove(directory.file("model-3000-00000-of-00001"));
  refuses("model-3000");
}

TEST_F(FallBackTest, WhatIsDamagedElsewhereStaysAsItIs) {
  lock();
  const testing::TemporaryDirectory elsewhere;
  for (const char* name : {"model-7.data-00000-of-00001", "model-7.index", "model-8.data-00000-of-00001",
                           "model-6.index.corrupt", "model-5.index.corrupt", "model-4.index.corrupt"}) {
    write_file_atomically(FileSystem::real(), elsewhere.file(name), "damaged");
  }
  const auto before = FileSystem::real().list(elsewhere.path());
  for (const std::string& place : {elsewhere.path(), directory.path() + "/../" + base_name(elsewhere.path())}) {
    write_state("model_checkpoint_path: \"" + place + "/model-7\"\nall_model_checkpoint_paths: \"" + place +
                "/model-8\"\n# being deleted: " + place + "/model-8\n");
    const LogRecorder log;
    EXPECT_EQ(restored(), 3);
    EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("is not renamed: this process has locked only"));
    EXPECT_EQ(FileSystem::real().list(elsewhere.path()), before);
    restart();
  }
}

TEST_F(FallBackTest, OrdinaryFilesThatAStateFileNamesAreNoCheckpoints) {
  lock();
  for (const char* name : {"notes.txt", "run.journal"}) {
    write_file_atomically(FileSystem::real(), directory.file(name),
                          "what took days to write, and nobody has a copy of");
  }
  write_state(
      "model_checkpoint_path: \"model-3\"\nall_model_checkpoint_paths: \"notes.txt\"\n"
      "all_model_checkpoint_paths: \"run.journal\"\nall_model_checkpoint_paths: \"model-3\"\n"
      "# being deleted: notes.txt\n");
  Saver restarted({.graph = &graph, .max_to_keep = 1, .name = "restarted"});
  prepare.saver = &restarted;
  const auto session = manager().prepare_session(prepare);
  EXPECT_THAT(restarted.last_checkpoints(), ElementsAre(prefixes[2]));
  restarted.save(*session, directory.file("model"), 4);
  EXPECT_TRUE(std::filesystem::exists(directory.file("notes.txt")));
  EXPECT_TRUE(std::filesystem::exists(directory.file("run.journal")));
}

TEST_F(FallBackTest, AFileOfPinsRemovesNothingElsewhere) {
  lock();
  const testing::TemporaryDirectory elsewhere;
  write_file_atomically(FileSystem::real(), elsewhere.file("thesis.tex"),
                        read_file(FileSystem::real(), index_path(prefixes[0])));
  write_file_atomically(FileSystem::real(), directory.file("checkpoint.retention"),
                        "longhaul retention 1\nfallen_out checkpoint ../" + base_name(elsewhere.path()) +
                            "/thesis.tex\nfallen_out checkpoint " + elsewhere.file("thesis.tex") + "\n");
  const auto session = manager().prepare_session(prepare);
  saver.save(*session, directory.file("model"), 4);
  EXPECT_TRUE(std::filesystem::exists(elsewhere.file("thesis.tex")));
}

// One whose first `count` restores, from the newest checkpoint on, fail as `error` says.
class FailingRestoreTest : public FallBackTest {
 protected:
  template <typename Error>
  void fail_restores(int count, Error error) {
    options.session_factory = [this, count, error](const std::string&, Graph& made_for, const SessionOptions&) {
      auto session = make_scripted_session(made_for, server);
      session->before_each_run([=, restores = 0](int, const Session::Request& request) mutable {
        if (request.fetches[0].op.name() == "save/restore_all" && restores++ < count) throw error;
      });
      return session;
    };
  }
};

TEST_F(FailingRestoreTest, TheNewestIsPassedOverWhateverItThrowsAndNotRenamed) {
  lock();
  const auto falls_back = [&](auto error) {
    fail_restores(1, error);
    const LogRecorder log;
    EXPECT_EQ(restored(), 2);
    EXPECT_THAT(log.text(LogLevel::kError), AllOf(HasSubstr("model-3"), HasSubstr(error.what())));
    EXPECT_TRUE(checkpoint_exists(FileSystem::real(), prefixes[2])) << "it may be whole";
    restart();
  };
  falls_back(std::bad_alloc());
  falls_back(std::length_error("vector::reserve"));
  falls_back(ResourceExhaustedError("out of memory"));
}

TEST_F(FailingRestoreTest, WhereAllFailTheFirstOnesErrorIsThrown) {
  fail_restores(3, std::bad_alloc());
  EXPECT_THAT(error_of([&] { restored(); }), AllOf(HasSubstr("model-3"), HasSubstr("bad_alloc")));
  EXPECT_THROW(restored(), ResourceExhaustedError);
}

TEST_F(FallBackTest, ADirectoryInPlaceOfTheStateFileIsNamedAtTheStart) {
  lock();
  std::filesystem::remove(directory.file("checkpoint"));
  std::filesystem::create_directory(directory.file("checkpoint"));
  EXPECT_THROW(restored(), FailedPreconditionError);
  const auto before = FileSystem::real().list(directory.path());
  const auto session = make_scripted_session(graph, server);
  session->run(v.initializer());
  EXPECT_THROW(saver.save(*session, directory.file("model"), 4), FailedPreconditionError);
  EXPECT_EQ(FileSystem::real().list(directory.path()), before) << "no checkpoint that nobody manages";
}

// The chiefs of whole trainings, which lock their directories.
class ChiefsFallBack : public SupervisorFixture {
 protected:
  ChiefsFallBack() { add_step(); }
  void damage(const std::string& prefix) {
    write_file_atomically(FileSystem::real(), data_path(prefix, 0, 1), "12345678");
  }
  int64_t step_in(Session& session) { return session.run(step).item<int64_t>(); }
};

TEST_F(ChiefsFallBack, ASupervisorGoesOnFromTheOneBefore) {
  Saver saver({.graph = &graph});
  options.saver = &saver;
  options.save_model_secs = Seconds{0};
  {
    Supervisor sv(options);
    sv.managed_session([&](Session& session) {
      session.run(train);
      saver.save(session, sv.save_path(), sv.global_step());
      session.run(train);
    });
    damage(sv.save_path() + "-2");
  }
  restart();
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { EXPECT_EQ(step_in(session), 1); });
  EXPECT_TRUE(std::filesystem::exists(sv.save_path() + "-2.index.corrupt"));
}

TEST_F(ChiefsFallBack, AMonitoredTrainingGoesOnFromTheOneBefore) {
  const MonitoredTrainingSessionOptions monitored{.graph = &graph,
                                                  .checkpoint_dir = directory.path(),
                                                  .save_checkpoint_steps = 1,
                                                  .save_summaries_steps = int64_t{0}};
  monitored_training_session(monitored, [&](MonitoredSession& session) {
    session.run(train);
    session.run(train);
  });
  damage(directory.file("model.ckpt-2"));
  restart();
  monitored_training_session(monitored, [&](MonitoredSession& session) {
    EXPECT_EQ(session.run(step).item<int64_t>(), 1);
    session.run(train);
  });
  EXPECT_TRUE(std::filesystem::exists(directory.file("model.ckpt-2.index.corrupt")));
  EXPECT_TRUE(exists(directory.file("model.ckpt-2"))) << "saved again";
}

}  // namespace
}  // namespace longhaul
