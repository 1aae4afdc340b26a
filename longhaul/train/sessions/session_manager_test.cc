#include "longhaul/train/sessions/session_manager.h"

#include <filesystem>

#include "longhaul/checkpoint/directory/checkpoint_copy.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/sessions/session_manager_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(SessionManagerTest, LocalInitNeedsAnOperation) {  // SM-2
  options.local_init_op = {};
  options.ready_for_local_init_op = options.ready_op;
  EXPECT_THAT(error_of([&] { manager(); }),
              HasSubstr("If you pass a ready_for_local_init_op you must also pass a local_init_op"));
}

TEST_F(SessionManagerTest, TheInitOperationsInitialise) {  // SM-10
  const auto session = manager().prepare_session(prepare);
  EXPECT_EQ(value(*session, v), 2);
  EXPECT_EQ(value(*session, w), 2);
}

TEST_F(SessionManagerTest, AFreshStartIsReportedWithItsDirectory) {
  restart();
  const LogRecorder log;
  manager().prepare_session(prepare);
  EXPECT_THAT(log.text(LogLevel::kInfo),
              HasSubstr(directory.path() + " has no checkpoint to resume from: the model is initialised\n"));
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("prefix")));
}

TEST_F(SessionManagerTest, APrefixInPlaceOfADirectoryIsWarnedOf) {
  const std::string prefix = save(7, 3);
  restart();
  prepare.checkpoint_dir = prefix;
  std::filesystem::create_directory(prefix);  // as the front ends do
  const LogRecorder log;
  manager().prepare_session(prepare);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr(prefix + " is the prefix of a checkpoint, not a directory"));
}

TEST_F(SessionManagerTest, FeedsReachTheInitOperation) {  // SM-10
  prepare.init_feed_dict = {{v.initial_value(), Tensor::scalar(125.0f)}};
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 125);
}

TEST_F(SessionManagerTest, AnInitFunctionAloneIsEnough) {  // SM-10
  prepare.init_op = {};
  prepare.init_fn = [this](Session& session) { session.run(v.initializer()); };
  EXPECT_EQ(value(*manager().prepare_session(prepare), w), 2);
}

TEST_F(SessionManagerTest, ThereMustBeSomethingToInitialiseWith) {  // SM-12
  options.local_init_op = {};
  options.ready_op = {};
  prepare.init_op = {};
  EXPECT_THAT(error_of([&] { manager().prepare_session(prepare); }),
              HasSubstr("Model is not initialized and no init_op or init_fn or local_init_op was given"));
  EXPECT_EQ(sessions.size(), 1u);
}

TEST_F(SessionManagerTest, ARestoredModelIsNotInitialised) {  // SM-11, SM-15
  const std::string prefix = save(1, 7);
  restart();
  bool called = false;
  prepare.init_fn = [&](Session&) { called = true; };
  Saver restarted({.graph = &graph, .name = "restarted"});
  prepare.saver = &restarted;
  SessionManager restarted_manager = manager();
  const LogRecorder log;
  const auto session = restarted_manager.prepare_session(prepare);
  EXPECT_THAT(log.text(LogLevel::kInfo), HasSubstr("Restored model from " + prefix + "\n"));
  EXPECT_EQ(value(*session, v), 1);
  EXPECT_EQ(value(*session, w), 1);
  EXPECT_FALSE(called);
  EXPECT_EQ(restarted_manager.restored_from(), prefix);
  EXPECT_THAT(restarted.last_checkpoints(), ElementsAre(prefix));
}

TEST_F(SessionManagerTest, TheStepsOfAPreparationComeInTheirOrder) {  // SM-11
  const Output ready = options.ready_op, ready_for_local = ops::report_uninitialized_variables(root, {v.info()});
  options.ready_for_local_init_op = ready_for_local;
  std::vector<std::string> done;
  options.session_factory = [&](const std::string&, Graph&, const SessionOptions&) {
    done.push_back("session");
    auto session = make_scripted_session(graph, server);
    session->before_each_run(
        [&](int, const Session::Request& request) { done.push_back(request.fetches[0].op.name()); });
    return session;
  };
  prepare.init_fn = [&](Session&) { done.push_back("init_fn"); };
  manager().prepare_session(prepare);
  EXPECT_THAT(done, ElementsAre("session", ready.op().name(), "v/Assign", "init_fn", ready_for_local.op().name(),
                                "w/Assign", ready.op().name()));
  save(1, 7);
  restart();
  done.clear();
  manager().prepare_session(prepare);
  EXPECT_THAT(done, ElementsAre("session", ready.op().name(), "save/restore_all", ready_for_local.op().name(),
                                "w/Assign", ready.op().name()));
}

TEST_F(SessionManagerTest, WithoutAStateFileItMayBeginAnew) {  // CS-6, CS-9
  save(1, 7);
  restart();
  prepare.recovery.search_directory = false;
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 1) << "the state file names it";
  restart();
  FileSystem::real().remove(join_path(prepare.checkpoint_dir, kDefaultStateFile));
  const LogRecorder log;
  const auto session = manager().prepare_session(prepare);
  EXPECT_NE(value(*session, v), 1);
  EXPECT_THAT(
      log.text(LogLevel::kWarning),
      AllOf(HasSubstr("search_directory is off: training starts from scratch, although"), HasSubstr("-7 exists")));
}

TEST_F(SessionManagerTest, WhatNoSaveDeletesIsTold) {  // SA-72
  Saver of_all({.graph = &graph, .max_to_keep = 0, .name = "of_all"}),
      one({.graph = &graph, .max_to_keep = 1, .name = "one"});
  const auto session = manager().prepare_session(prepare);
  for (int64_t step = 1; step <= 4; ++step) of_all.save(*session, directory.file("model"), step);
  prepare.saver = &one;
  restart();
  const LogRecorder log;
  manager().prepare_session(prepare);
  EXPECT_THAT(log.text(LogLevel::kInfo),
              AllOf(HasSubstr("3 checkpoints that no save deletes"), HasSubstr("model-1, model-2, model-3"),
                    Not(HasSubstr("model-3, model-4"))));
  prepare.saver = &of_all;
  restart();
  const LogRecorder of_keeping_all;
  manager().prepare_session(prepare);
  EXPECT_THAT(of_keeping_all.text(), Not(HasSubstr("that no save deletes")));
}

// A training that began anew, beside one that had come to step 100.
class BegunAnew : public SessionManagerTest {
 protected:
  BegunAnew() {
    for (int64_t step : {50, 100}) abandoned.push_back(save(9, step));
    FileSystem::real().remove(state_file());
    saver.recover_last_checkpoints(std::vector<std::string>{});
    for (int64_t step : {7, 8}) listed.push_back(save(static_cast<float>(step), step));
    restart();
    prepare.recovery.search_directory = false;
  }
  std::string state_file() const { return directory.file(kDefaultStateFile); }
  float restored() { return value(*manager().prepare_session(prepare), v); }

  std::vector<std::string> abandoned, listed;
};

TEST_F(BegunAnew, GoesBackOnlyToWhatTheStateFileLists) {  // CS-6
  EXPECT_EQ(restored(), 8);
  restart();
  damage(listed[1]);
  EXPECT_EQ(restored(), 7);
  restart();
  damage(listed[0]);
  EXPECT_THAT(error_of([&] { restored(); }), AllOf(HasSubstr("all checkpoints in"), HasSubstr(listed[0]),
                                                   HasSubstr(listed[1]), Not(HasSubstr(abandoned[1]))));
  prepare.recovery.search_directory = true;
  EXPECT_EQ(restored(), 9) << "where the directory is searched";
}

TEST_F(BegunAnew, LeavesAloneWhatIsWrongWithTheOldCheckpoints) {
  const DirectoryLock lock(directory.path());
  FileSystem::real().remove(data_path(abandoned[0], 0, 1));
  FileSystem::real().remove(index_path(abandoned[1]));
  EXPECT_EQ(restored(), 8);
  EXPECT_TRUE(FileSystem::real().exists(index_path(abandoned[0])));
  EXPECT_TRUE(FileSystem::real().exists(data_path(abandoned[1], 0, 1)));
}

TEST_F(BegunAnew, RefusesAStateFileThatCannotBeUsed) {  // CS-6
  for (const bool waits : {false, true}) {
    prepare.wait_for_checkpoint = waits;
    for (const char* text : {"", "\xff\xfe{"}) {
      write_file_atomically(FileSystem::real(), state_file(), text);
      EXPECT_THAT(error_of([&] { restored(); }),
                  AllOf(HasSubstr("Invalid checkpoint state loaded from " + state_file()),
                        HasSubstr("or remove the file to start over")));
    }
    FileSystem::real().remove(state_file());
    std::filesystem::create_symlink("/nowhere/checkpoint", state_file());
    EXPECT_THAT(error_of([&] { restored(); }), HasSubstr("is a link to a missing file"));
  }
  prepare.recovery.search_directory = true;
  EXPECT_EQ(restored(), 9) << "where the directory is searched";
}

TEST_F(BegunAnew, TakesOfTheMirrorWhatBothStateFilesList) {
  const testing::TemporaryDirectory mirror;
  CheckpointState mirrored;
  for (const std::string& prefix : {abandoned[1], listed[0], listed[1]}) {
    mirrored.model_checkpoint_path = mirror.file(base_name(prefix));
    mirrored.all_model_checkpoint_paths.push_back(mirrored.model_checkpoint_path);
    copy_checkpoint(prefix, mirrored.model_checkpoint_path, {});
  }
  prepare.mirror.directory = mirror.path();
  EXPECT_EQ(restored(), 8);
  for (const std::string& prefix : listed) damage(prefix);
  restart();
  EXPECT_THAT(error_of([&] { restored(); }), HasSubstr("all checkpoints in")) << "the mirror lists none";
  write_checkpoint_state(FileSystem::real(), mirror.path(), mirrored);
  EXPECT_EQ(restored(), 8);
  restart();
  for (const std::string& prefix : mirrored.all_model_checkpoint_paths) {
    if (split_step(prefix).step < 100) damage(prefix);
  }
  EXPECT_THAT(error_of([&] { restored(); }), HasSubstr("all checkpoints in"));
}

TEST_F(SessionManagerTest, ARestoreByNameTellsTheSaverOfNone) {  // SM-15
  const std::string first = save(1, 7), second = save(3, 8);
  restart();
  Saver by_directory({.graph = &graph, .name = "by_directory"}), by_name({.graph = &graph, .name = "by_name"});
  prepare.saver = &by_directory;
  manager().prepare_session(prepare);
  EXPECT_THAT(by_directory.last_checkpoints(), ElementsAre(first, second));
  restart();
  prepare.saver = &by_name;
  prepare.checkpoint_dir.clear();
  prepare.checkpoint_filename_with_path = second;
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 3);
  EXPECT_THAT(by_name.last_checkpoints(), IsEmpty());
}

TEST_F(SessionManagerTest, ADamagedCheckpointIsPassedOverLoudly) {  // unlike SA-50
  const std::string good = save(1, 7), bad = save(3, 8);
  damage(bad);
  restart();
  const LogRecorder log;
  SessionManager restarted_manager = manager();
  EXPECT_EQ(value(*restarted_manager.prepare_session(prepare), v), 1);
  EXPECT_EQ(restarted_manager.restored_from(), good);
  EXPECT_THAT(log.text(), HasSubstr("checkpoint " + bad + " is damaged and skipped"));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(good));
}

TEST_F(SessionManagerTest, ACheckpointCanBePassedOverThoughItIsWhole) {
  const std::string oldest = save(1, 1);
  const std::string second = save(2, 2);
  const std::string newest = save(3, 3);
  restart();
  options.skip_reason = [&](const std::string& prefix) {
    return prefix == newest ? std::optional<std::string>("two runs died of it") : std::nullopt;
  };
  const LogRecorder log;
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 2);
  EXPECT_THAT(log.text(LogLevel::kWarning), AllOf(HasSubstr(newest), HasSubstr("two runs died of it")));
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), newest));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(oldest, newest, second)) << "the one that is good stays longest";
}

TEST_F(SessionManagerTest, OnePassedOverIsRestoredWhereNoOtherIsLeft) {
  damage(save(1, 1));
  save(2, 2);
  save(3, 3);
  restart();
  options.skip_reason = [](const std::string&) { return std::optional<std::string>("it is not liked"); };
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 3) << "the newest of them";
}

TEST_F(SessionManagerTest, IfAllAreDamagedTrainingDoesNotStartAfresh) {
  damage(save(1, 7));
  restart();
  EXPECT_THROW(manager().prepare_session(prepare), DataLossError);
}

TEST_F(SessionManagerTest, ACheckpointThatDoesNotFitIsNotPassedOver) {
  save(1, 7);
  Saver narrow({.var_list = {{{"v", w}, {"x", v}}}, .name = "narrow"});
  restart();
  prepare.saver = &narrow;
  EXPECT_THAT(error_of([&] { manager().prepare_session(prepare); }), HasSubstr("Key x not found in checkpoint"));
}

TEST_F(SessionManagerTest, ACheckpointThatACrashKeptFromBeingListedIsManagedAgain) {  // unlike SM-15
  const std::string listed = save(1, 7);
  const std::string orphan = saver_with_no_state(3, 8);
  restart();
  SessionManager restarted_manager = manager();
  EXPECT_EQ(value(*restarted_manager.prepare_session(prepare), v), 3);
  EXPECT_EQ(restarted_manager.restored_from(), orphan);
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(listed, orphan));
}

TEST_F(SessionManagerTest, ACopiedDirectoryIsARunOfItsOwn) {
  const std::string first = save(1, 7), second = save(3, 8);
  const testing::TemporaryDirectory copy;
  std::filesystem::copy(directory.path(), copy.path());
  restart();
  prepare.checkpoint_dir = copy.path();
  SessionManager in_copy = manager();
  in_copy.prepare_session(prepare);
  EXPECT_EQ(in_copy.restored_from(), copy.file("model-8"));
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(copy.file("model-7"), copy.file("model-8")));
}

TEST_F(SessionManagerTest, CheckpointsOfAnotherDirectoryAreRestoredAndNotManaged) {  // unlike SM-15
  const std::string prefix = save(1, 7);
  const testing::TemporaryDirectory copy;
  std::filesystem::copy(directory.file("checkpoint"), copy.file("checkpoint"));
  restart();
  prepare.checkpoint_dir = copy.path();
  SessionManager in_copy = manager();
  in_copy.prepare_session(prepare);
  EXPECT_EQ(in_copy.restored_from(), prefix);
  EXPECT_THAT(saver.last_checkpoints(), IsEmpty());
}

TEST_F(SessionManagerTest, OnlyOneWayToNameACheckpoint) {  // SM-14
  prepare.checkpoint_dir = directory.path();
  prepare.checkpoint_filename_with_path = directory.file("model");
  EXPECT_THAT(error_of([&] { manager().prepare_session(prepare); }), HasSubstr("Can not provide both"));
  EXPECT_THAT(error_of([&] { manager().recover_session(prepare); }), HasSubstr("Can not provide both"));
  EXPECT_TRUE(sessions.empty());
}

TEST_F(SessionManagerTest, ACheckpointIsWaitedForAsLongAsAllowed) {  // SM-12, unlike SM-13
  prepare.checkpoint_dir = directory.path();
  prepare.wait_for_checkpoint = true;
  prepare.max_wait_secs = Seconds{2};
  const Seconds start = clock.now();
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 2);
  EXPECT_DOUBLE_EQ((clock.now() - start).count(), 2);  // not the 30 of recovery_wait_secs
  save(1, 7);
  restart();
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 1);
}

TEST_F(SessionManagerTest, WithNothingToInitialiseWithTheWaitEndsInAnError) {  // SM-12
  options.local_init_op = {};
  options.ready_op = {};
  prepare.init_op = {};
  prepare.checkpoint_dir = directory.path();
  prepare.wait_for_checkpoint = true;
  prepare.max_wait_secs = Seconds{2};
  const Seconds start = clock.now();
  EXPECT_THAT(error_of([&] { manager().prepare_session(prepare); }),
              HasSubstr("Model is not initialized and no init_op"));
  EXPECT_DOUBLE_EQ((clock.now() - start).count(), 2);
  save(1, 7);
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 1);
}

TEST_F(SessionManagerTest, AStopEndsTheWaitForACheckpoint) {
  prepare.checkpoint_dir = directory.path();
  prepare.wait_for_checkpoint = true;
  options.coordinator.request_stop();
  EXPECT_THROW(manager().prepare_session(prepare), CancelledError);
}

TEST_F(SessionManagerTest, WhatStaysUninitialisedIsNamed) {  // SM-19
  prepare.init_op = {};
  options.local_init_op = ops::no_op(root);
  EXPECT_THAT(error_of([&] { manager().prepare_session(prepare); }),
              AllOf(HasSubstr("Init operations did not make model ready."),
                    HasSubstr("Variables not initialized: v, w"), HasSubstr("init_op: none")));
}

TEST_F(SessionManagerTest, LocalInitWaitsUntilItsModelIsReady) {  // SM-20
  options.ready_for_local_init_op = options.ready_op;             // demands w, which only local init sets
  EXPECT_THAT(error_of([&] { manager().prepare_session(prepare); }),
              HasSubstr("Init operations did not make model ready for local_init. init_op: v/Assign"));
}

TEST_F(SessionManagerTest, RecoveryByDirectoryAndByName) {  // SM-30, SM-31, SM-34
  const std::string prefix = save(1, 7);
  const LogRecorder log;
  restart();
  auto recovered = manager().recover_session(prepare);
  EXPECT_TRUE(recovered.initialized);
  EXPECT_EQ(value(*recovered.session, w), 1);
  restart();
  prepare.checkpoint_dir.clear();
  prepare.checkpoint_filename_with_path = prefix;
  recovered = manager().recover_session(prepare);
  EXPECT_TRUE(recovered.initialized);
  EXPECT_EQ(value(*recovered.session, v), 1);
  EXPECT_THAT(log.text(), HasSubstr("Restored model from " + prefix));
}

TEST_F(SessionManagerTest, NothingToRecoverIsNoError) {  // SM-33
  restart();
  options.local_init_op = ops::assign(root, w, ops::constant(root, 1.0f)).op();
  const auto recovered = manager().recover_session(prepare);
  EXPECT_FALSE(recovered.initialized);
  EXPECT_EQ(value(*recovered.session, w), 1);
  EXPECT_THROW(recovered.session->run(v), FailedPreconditionError);
}

TEST_F(SessionManagerTest, ARecoveredModelThatIsNotReadyIsNoError) {  // SM-32
  save(1, 7);
  restart();
  options.ready_for_local_init_op = options.ready_op;
  const auto recovered = manager().recover_session(prepare);
  EXPECT_FALSE(recovered.initialized);
  EXPECT_EQ(value(*recovered.session, v), 1);
  EXPECT_THROW(recovered.session->run(w), FailedPreconditionError);
}

class WaitForSessionTest : public SessionManagerTest {
 protected:
  WaitForSessionTest() {
    options.recovery_wait_secs = Seconds{1};
    options.ready_for_local_init_op = ops::report_uninitialized_variables(root, {v.info()});
  }
};

TEST_F(WaitForSessionTest, TheDeadlineIsKept) {  // SM-40, unlike SM-41
  const Seconds start = clock.now();
  EXPECT_THAT(error_of([&] { manager().wait_for_session("", {}, Seconds{3.5}); }),
              HasSubstr("Session was not ready after waiting 3.5 secs."));
  EXPECT_DOUBLE_EQ((clock.now() - start).count(), 3.5);
  EXPECT_THROW(manager().wait_for_session("", {}, Seconds{0}), DeadlineExceededError);
}

TEST_F(WaitForSessionTest, TheDeadlineIsKeptWithoutARecoveryWait) {  // unlike SM-41
  options.recovery_wait_secs = Seconds{0};
  EXPECT_THROW(manager().wait_for_session("", {}, Seconds{0.01}), DeadlineExceededError);
}

TEST_F(WaitForSessionTest, TheChiefsWorkIsAwaited) {  // SM-42
  int made = 0;
  options.session_factory = [&](const std::string&, Graph&, const SessionOptions&) {
    ++made;
    auto session = make_scripted_session(graph, server);
    session->before_each_run([&](int run, const Session::Request&) {
      if (run == 3) make_scripted_session(graph, server)->run(v.initializer());
    });
    return session;
  };
  const auto session = manager().wait_for_session("", {}, std::nullopt);
  EXPECT_EQ(value(*session, v), 2);
  EXPECT_EQ(value(*session, w), 2);
  EXPECT_EQ(made, 1);  // not one for each look
}

int times_said(const LogRecorder& log, const std::string& words) {
  const std::string text = log.text();
  int times = 0;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++times;
  return times;
}

TEST_F(WaitForSessionTest, WhatIsWaitedForIsSaidOnceASecondAndAtTheEnd) {
  options.recovery_wait_secs = Seconds{0.25};  // as often as a chief that initialises changes it
  const LogRecorder log;
  EXPECT_THROW(manager().wait_for_session("", {}, Seconds{2.5}), DeadlineExceededError);
  EXPECT_EQ(times_said(log, "Waiting for model to be ready."), 4) << "at 0, 1, 2 and 2.5 s:\n" << log.text();
}

TEST_F(WaitForSessionTest, WhatChangesAtOnceIsSaidOnce) {
  options.recovery_wait_secs = Seconds{0.003};
  options.session_factory = [&](const std::string&, Graph&, const SessionOptions&) {
    auto session = make_scripted_session(graph, server);
    session->before_each_run([&](int run, const Session::Request&) {
      if (run == 5) make_scripted_session(graph, server)->run(v.initializer());
    });
    return session;
  };
  const LogRecorder log;
  manager().wait_for_session("", {}, Seconds{60});
  EXPECT_EQ(times_said(log, "Waiting for model to be ready."), 1) << log.text();
}

TEST_F(WaitForSessionTest, TheLimitIsAlsoThatOfTheWaitForTasks) {
  std::vector<std::optional<Seconds>> waits;
  options.session_factory = [&](const std::string&, Graph&, const SessionOptions& config) {
    waits.push_back(config.task_wait);
    auto session = make_scripted_session(graph, server);
    session->before_each_run([this](int, const Session::Request&) {
      clock.advance(Seconds{3});
      throw UnavailableError("task /job:ps/replica:0/task:0 has not answered for 3 s");
    });
    return session;
  };
  EXPECT_THAT(coded_error_of([&] { manager().wait_for_session("grpc://ps", {}, Seconds{3}); }),
              AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("task /job:ps/replica:0/task:0")));
  EXPECT_THROW(manager().wait_for_session("grpc://ps", {.task_wait = Seconds{1}}, Seconds{60}), UnavailableError);
  prepare.max_wait_secs = Seconds{3};
  EXPECT_THROW(manager().prepare_session(prepare), DeadlineExceededError);
  prepare.max_wait_secs = std::nullopt;
  EXPECT_THROW(manager().prepare_session(prepare), UnavailableError);
  EXPECT_THAT(waits, ElementsAre(Seconds{3}, Seconds{1}, Seconds{3}, Seconds{1e9}));
}

TEST_F(WaitForSessionTest, AnOverStrictCheckNeverPasses) {  // SM-43
  options.ready_for_local_init_op = options.ready_op;
  make_scripted_session(graph, server)->run(v.initializer());
  EXPECT_THROW(manager().wait_for_session("", {}, Seconds{3}), DeadlineExceededError);
}

TEST_F(WaitForSessionTest, AStopEndsTheWait) {
  options.coordinator.request_stop();
  EXPECT_THROW(manager().wait_for_session(""), CancelledError);
}

TEST_F(WaitForSessionTest, OtherErrorsAreNotTakenForNotReady) {  // SM-50
  options.session_factory = [this](const std::string&, Graph&, const SessionOptions&) {
    auto session = make_scripted_session(graph, server);
    session->before_each_run([](int, const Session::Request&) { throw FailedPreconditionError("poisoned"); });
    return session;
  };
  EXPECT_THAT(error_of([&] { manager().wait_for_session(""); }), HasSubstr("poisoned"));
}

}  // namespace
}  // namespace longhaul
