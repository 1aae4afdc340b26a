#include <optional>

#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The steps of a session's life, and what can be left out.
class LifecycleTest : public SupervisorFixture {
 protected:
  bool has_text_graph() { return FileSystem::real().exists(directory.file("graph.pbtxt")); }
  Variable v = ops::variable(root, "v", Tensor::scalar(1.0f));
};

TEST_F(LifecycleTest, TheDefaultsAreThoseOfTheOriginal) {  // SV-25, SV-1
  const ManagedSessionOptions managed;
  EXPECT_TRUE(managed.master.empty());
  EXPECT_TRUE(managed.start_standard_services);
  EXPECT_TRUE(managed.close_summary_writer);
  const PrepareSessionOptions prepare;
  EXPECT_TRUE(prepare.master.empty());
  EXPECT_FALSE(prepare.wait_for_checkpoint);
  EXPECT_EQ(prepare.max_wait_secs, Seconds{7200});
  EXPECT_TRUE(prepare.start_standard_services);
  EXPECT_EQ(SupervisorOptions().stop_grace_secs, Seconds{120});
  EXPECT_EQ(SupervisorOptions().recovery_wait_secs, Seconds{30});
}

TEST_F(LifecycleTest, TheReadyOperationNamesGlobalAndLocalVariables) {  // SV-3
  ops::local_variable(root, "w", ops::constant(root, 1.0f));
  Supervisor sv(options);
  const Tensor names = make_scripted_session(graph)->run(sv.ready_op());
  EXPECT_TRUE(identical(names, Tensor::of<std::string>({"v", "w"})));
  EXPECT_EQ(sv.saver()->saved_tensors().size(), 1u);
}

TEST_F(LifecycleTest, TheDefaultsInitialiseGlobalVariablesAndMergeTheSummaries) {  // SV-3
  ops::local_variable(root, "w", ops::constant(root, 2.0f));
  summary::scalar(root, "one", v);
  summary::scalar(root, "two", v);
  Supervisor sv(options);
  EXPECT_FALSE(sv.ready_for_local_init_op().valid());
  const auto session = make_scripted_session(graph);
  for (const Operation& op : sv.init_op().operations()) session->run(op);
  EXPECT_TRUE(identical(session->run(sv.ready_op()), Tensor::of<std::string>({"w"})));
  proto::Summary merged;
  ASSERT_TRUE(merged.ParseFromString(session->run(sv.summary_op()).item<std::string>()));
  EXPECT_EQ(merged.value_size(), 2);
}

TEST_F(LifecycleTest, AChiefPreparesThenWritesTheGraphThenStartsTheServices) {  // SV-26
  const LogRecorder log;
  bool called = false;
  Supervisor* made = nullptr;
  options.init_fn = [&](Session& session) {
    called = true;
    EXPECT_FALSE(made->should_stop());
    EXPECT_FALSE(has_text_graph());
    EXPECT_THAT(log.text(), Not(HasSubstr("Starting standard services.")));
    EXPECT_EQ(session.run(v).item<float>(), 1);
  };
  Supervisor sv(options);
  made = &sv;
  sv.request_stop();
  const auto session = sv.prepare_or_wait_for_session();
  EXPECT_TRUE(called);
  EXPECT_TRUE(has_text_graph());
  EXPECT_THAT(log.text(), HasSubstr("Starting standard services."));
  sv.stop();
}

TEST_F(LifecycleTest, ServicesAreStartedOnlyIfWanted) {  // SV-26
  const LogRecorder log;
  Supervisor sv(options);
  sv.prepare_or_wait_for_session({.start_standard_services = false});
  EXPECT_THAT(log.text(), Not(HasSubstr("Starting standard services.")));
  sv.stop();
}

TEST_F(LifecycleTest, TheTextOfTheGraphIsWrittenAtEveryPreparation) {  // SV-53
  Supervisor sv(options);
  for (int i = 0; i < 2; ++i) {
    sv.managed_session([&](Session&) { EXPECT_TRUE(has_text_graph()); }, {.close_summary_writer = false});
    FileSystem::real().remove(directory.file("graph.pbtxt"));
  }
  sv.summary_writer()->close();
  const auto lines = described_events();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "graph"), 1);
}

TEST_F(LifecycleTest, TheServicesComeInTheirOrder) {  // SV-40
  add_step();
  summary::scalar(root, "v", v);
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  const auto services = sv.start_standard_services(session);
  ASSERT_EQ(services.size(), 3u);
  EXPECT_NE(std::dynamic_pointer_cast<SummaryService>(services[0]), nullptr);
  EXPECT_NE(std::dynamic_pointer_cast<StepCounterService>(services[1]), nullptr);
  EXPECT_NE(std::dynamic_pointer_cast<TimerCheckpointService>(services[2]), nullptr);
  sv.stop();
}

TEST_F(LifecycleTest, WhatIsMissingLeavesItsServicesOut) {  // SV-40
  add_step();
  summary::scalar(root, "v", v);
  const auto services_with = [&](auto&& change) {
    SupervisorOptions changed = options;
    change(changed);
    Supervisor sv(changed);
    const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
    const size_t count = sv.start_standard_services(session).size();
    sv.stop();
    return count;
  };
  EXPECT_EQ(services_with([](auto& changed) { changed.save_summaries_secs = Seconds{0}; }), 1u);
  EXPECT_EQ(services_with([](auto& changed) { changed.save_model_secs = Seconds{0}; }), 2u);
  EXPECT_EQ(services_with([](auto& changed) { changed.summary_op = kNone; }), 2u);
  EXPECT_EQ(services_with([](auto& changed) { changed.global_step = kNone; }), 2u);
  EXPECT_EQ(services_with([](auto& changed) { changed.summary_writer = kNone; }), 1u);
  EXPECT_EQ(services_with([](auto& changed) { changed.saver = kNone; }), 2u);
}

TEST_F(LifecycleTest, NoneOutranksTheCollections) {  // SV-4, SV-2
  graph.add_to_collection(collections::kReadyOp, ops::constant(root, Tensor::of<std::string>({"never"})));
  graph.add_to_collection(collections::kReadyForLocalInitOp, ops::constant(root, Tensor::of<std::string>({"never"})));
  const Operation fails =
      ops::host_function(root, {}, {}, [](auto&) -> std::vector<Tensor> { throw InternalError("ran"); });
  graph.add_to_collection(collections::kInitOp, fails);
  graph.add_to_collection(collections::kLocalInitOp, fails);
  graph.add_to_collection(collections::kSummaryOp, ops::constant(root, Tensor::scalar("not a summary")));
  graph.add_to_collection(collections::kGlobalStep, ops::constant(root, int64_t{5}));
  options.ready_op = options.ready_for_local_init_op = options.summary_op = options.global_step = kNone;
  options.init_op = options.local_init_op = kNone;
  options.init_fn = [](Session&) {};
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  EXPECT_FALSE(sv.ready_for_local_init_op().valid());
  EXPECT_FALSE(sv.summary_op().valid());
  EXPECT_FALSE(sv.global_step().valid());
  const auto session = sv.prepare_or_wait_for_session();
  sv.stop();
}

TEST_F(LifecycleTest, AReadyForLocalInitOperationComesFromTheCollection) {  // SV-2
  const Output never = ops::constant(root, Tensor::of<std::string>({"never"}));
  graph.add_to_collection(collections::kReadyForLocalInitOp, never);
  Supervisor sv(options);
  EXPECT_EQ(sv.ready_for_local_init_op(), never);
  EXPECT_THAT(error_of([&] { sv.prepare_or_wait_for_session(); }),
              AllOf(HasSubstr("did not make model ready for local_init"), HasSubstr("never")));
}

TEST_F(LifecycleTest, AGivenSaverAndWriterAreUsedAndStayTheCallers) {
  testing::TemporaryDirectory elsewhere;
  Saver saver({.graph = &graph, .max_to_keep = 1});
  FileWriter writer(elsewhere.path());
  options.saver = &saver;
  options.summary_writer = &writer;
  {
    Supervisor sv(options);
    EXPECT_EQ(sv.saver(), &saver);
    EXPECT_EQ(sv.summary_writer(), &writer);
    sv.managed_session([](Session&) {});
  }
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(directory.file("model.ckpt")));
  EXPECT_EQ(event_files(directory.path()).size(), 0u);
  EXPECT_EQ(event_files(elsewhere.path()).size(), 1u);
}

TEST_F(LifecycleTest, ALoopIsAThreadOfTheSupervisor) {  // SV-55
  Supervisor sv(options);
  std::atomic<int> calls{0}, timed_calls{0};
  sv.managed_session([&](Session&) {
    sv.loop(std::nullopt, [&] { ++calls; });
    sv.loop(Seconds{10}, [&] { ++timed_calls; });
    eventually([&] { return calls >= 3 && timed_calls == 1; });
    clock.advance(Seconds{10});
    eventually([&] { return timed_calls == 2; });
  });
  const int at_the_end = calls;
  std::this_thread::yield();
  EXPECT_EQ(calls, at_the_end);
}

TEST_F(LifecycleTest, ALostSessionOnServersIsAnAbortedError) {  // unlike RC-1
  Supervisor sv(options);
  const auto lose = [](Session&) {
    UnavailableError error("task /job:ps/replica:0/task:1 does not answer");
    error.set_failed_step({StepFate::kCommitted, 7});
    throw error;
  };
  try {
    sv.managed_session(lose, {.master = "grpc://ps1:2222"});
    FAIL() << "nothing was thrown";
  } catch (const AbortedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("UNAVAILABLE: task /job:ps/replica:0/task:1 does not answer"));
    EXPECT_EQ(error.failed_step(), (FailedStep{StepFate::kCommitted, 7}));
  }
  EXPECT_THROW(sv.managed_session(lose), UnavailableError);  // in this process
}

TEST_F(LifecycleTest, AStopClosesTheEventsAndNothingElse) {  // SV-64
  add_step(5);
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  sv.stop();
  EXPECT_EQ(described_events().back(), "STOP");  // without the step
  EXPECT_FALSE(exists(sv.save_path() + "-5"));
  EXPECT_EQ(session->run(step).item<int64_t>(), 5);
}

TEST_F(LifecycleTest, TheEventOfAStopNamesTheLastCheckpoint) {  // unlike SV-64
  add_step(5);
  Supervisor sv(options);
  sv.managed_session([](Session&) {});
  EXPECT_EQ(events().back().session_log().status(), proto::SessionLog::STOP);
  EXPECT_EQ(events().back().session_log().msg(), sv.save_path() + "-5");
}

TEST_F(LifecycleTest, AStopWithAnErrorClosesTheEventsToo) {  // SV-64
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  sv.request_stop(std::make_exception_ptr(InternalError("failed")));
  EXPECT_THROW(sv.stop(), InternalError);
  EXPECT_THAT(described_events(), Contains("STOP"));
}

TEST_F(LifecycleTest, AStopWaitsForThreadsThatItIsGiven) {  // SV-64
  Supervisor sv(options);
  const Coordinator other;
  const auto session = sv.prepare_or_wait_for_session();
  std::atomic<bool> ended{false};
  const auto thread = other.start_thread("own", [&] {
    while (!sv.should_stop()) std::this_thread::yield();
    ended = true;
  });
  sv.stop({.threads = {thread}});
  EXPECT_TRUE(ended);
}

TEST_F(LifecycleTest, ThreadsThatDoNotEndAreNamedOrIgnored) {  // SV-64
  options.stop_grace_secs = Seconds{0};
  Supervisor sv(options);
  const auto release = std::make_shared<std::atomic<bool>>(false);
  const auto deaf = [release] {
    while (!*release) std::this_thread::yield();
  };
  auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  sv.loop(std::nullopt, deaf);
  EXPECT_THAT(error_of([&] { sv.stop(); }), HasSubstr("threads still running: lh-loop"));
  session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  const auto straggler = sv.coord().start_thread("deaf", deaf);
  EXPECT_NO_THROW(sv.stop({.ignore_live_threads = true}));
  *release = true;
  eventually([&] { return straggler->finished(); });
}

TEST_F(LifecycleTest, AServiceThatOutlivesItsSupervisorKeepsWhatItUses) {
  const auto release = std::make_shared<std::atomic<bool>>(false), waits = std::make_shared<std::atomic<bool>>(false);
  install_session_factory([release, waits](const std::string&, Graph& made_for, const SessionOptions&) {
    auto session = make_scripted_session(made_for);
    session->before_each_run([release, waits](int, const Session::Request& request) {
      if (!request.options.snapshot) return;
      *waits = true;
      while (!*release) std::this_thread::yield();
    });
    return session;
  });
  auto saver = std::make_shared<Saver>(SaverOptions{.graph = &graph});
  auto writer = std::make_shared<FileWriter>(directory.path());
  const std::weak_ptr<Saver> saver_used = saver;
  const std::weak_ptr<FileWriter> writer_used = writer;
  options.saver = std::move(saver);
  options.summary_writer = std::move(writer);
  options.stop_grace_secs = Seconds{0};
  {
    Supervisor sv(std::exchange(options, {}));
    auto session = sv.prepare_or_wait_for_session();
    eventually([&] { return waits->load(); });
    EXPECT_THAT(error_of([&] { sv.stop(); }), HasSubstr("threads still running: lh-checkpoints"));
  }
  EXPECT_FALSE(saver_used.expired());
  EXPECT_FALSE(writer_used.expired());
  *release = true;
  eventually([&] { return saver_used.expired() && writer_used.expired(); });
}

// A chief and another one on a server. The graph is one; each supervisor takes what is in its collections.
class TwoSupervisorsTest : public SupervisorFixture {
 protected:
  TwoSupervisorsTest() {
    options.recovery_wait_secs = Seconds{1};
    options.ready_for_local_init_op = ops::report_uninitialized_variables(root, {v.info()});
  }
  SupervisorOptions others() const {
    SupervisorOptions changed = options;
    changed.is_chief = false;
    return changed;
  }
  float value(Session& session, const Output& output) { return session.run(output).item<float>(); }

  Variable v = ops::variable(root.with_device("/job:localhost"), "v", Tensor::scalar(1.0f));
  Variable w = ops::local_variable(root.with_device("/job:localhost"), "w", v);
  Output add_one = ops::assign_add(root, v, ops::constant(root, 1.0f));
};

TEST_F(TwoSupervisorsTest, LocalVariablesFollowTheChiefsModel) {  // SV-33, SV-31
  options.logdir.clear();
  Supervisor chief(options), other(others());
  const auto session = chief.prepare_or_wait_for_session();
  EXPECT_EQ(value(*session, w), 1);
  const auto others_session = other.prepare_or_wait_for_session();
  EXPECT_EQ(value(*others_session, add_one), 2);
  EXPECT_EQ(value(*others_session, w), 1);
  EXPECT_EQ(value(*session, v), 2);
  other.stop();
  chief.stop();
}

TEST_F(TwoSupervisorsTest, ARestoreComesBeforeTheLocalInit) {  // SV-34
  Supervisor chief(options), other(others());
  const auto before = make_scripted_session(graph);
  before->run(v.initializer(), {{v.initial_value(), Tensor::scalar(10.0f)}});
  chief.saver()->save(*before, chief.save_path());
  const auto session = chief.prepare_or_wait_for_session({.start_standard_services = false});
  EXPECT_EQ(value(*session, w), 10);
  const auto others_session = other.prepare_or_wait_for_session();
  EXPECT_EQ(value(*others_session, add_one), 11);
  EXPECT_EQ(value(*others_session, w), 10);
  EXPECT_EQ(value(*session, v), 11);
  other.stop();
  chief.stop();
}

TEST_F(TwoSupervisorsTest, AChiefThatComesBackToALiveModelLeavesItAsItIs) {
  Supervisor chief(options);
  chief.managed_session([&](Session& session) { value(session, add_one); });
  auto session = chief.prepare_or_wait_for_session({.start_standard_services = false});
  value(*session, add_one);
  chief.stop();  // the checkpoint has 2, the server 3
  session = chief.prepare_or_wait_for_session();
  EXPECT_EQ(value(*session, v), 3);
  EXPECT_EQ(chief.restored_from(), "");
  chief.stop();
}

TEST_F(LifecycleTest, ASecondSessionBesideTheServicesOfTheFirstIsRefused) {  // unlike SV-26
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  const auto refusal =
      AllOf(HasSubstr("this Supervisor already has a session: call stop() first"), HasSubstr("lh-checkpoints"));
  EXPECT_THAT(error_of([&] { sv.prepare_or_wait_for_session(); }), refusal);
  EXPECT_THAT(error_of([&] { sv.managed_session([](Session&) { FAIL(); }); }), refusal);
  EXPECT_THROW(sv.prepare_or_wait_for_session({.start_standard_services = false}), FailedPreconditionError);
  EXPECT_FALSE(sv.should_stop()) << "the first one goes on";
  EXPECT_NO_THROW(session->run(v));
  sv.stop();
  EXPECT_NO_THROW(sv.prepare_or_wait_for_session());
  sv.stop();
}

TEST_F(LifecycleTest, ASessionMadeByHandInTheBodyOfAManagedOneIsRefused) {
  Supervisor sv(options);
  sv.managed_session(
      [&](Session&) {
        EXPECT_THAT(error_of([&] { sv.prepare_or_wait_for_session(); }),
                    HasSubstr("use the session passed to its body"));
      },
      {.start_standard_services = false});
}

TEST_F(LifecycleTest, ALostSessionIsFollowedByAnotherWithoutAStop) {
  Supervisor sv(options);
  auto session = sv.prepare_or_wait_for_session();
  sv.request_stop(std::make_exception_ptr(AbortedError("the session is lost")));
  session = sv.prepare_or_wait_for_session();
  EXPECT_FALSE(sv.should_stop());
  EXPECT_EQ(sv.coord().running().size(), 2u) << "those of the first have ended: lh-checkpoints, lh-journal";
  EXPECT_NO_THROW(sv.stop());
}

TEST_F(LifecycleTest, AStopSaysWhichStepsNoCheckpointHas) {  // unlike SV-64
  add_step();
  options.save_model_secs = Seconds{0};
  const LogRecorder log;
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  for (int i = 0; i < 3; ++i) session->run(train);
  sv.saver()->save(*session, sv.save_path(), step);
  for (int i = 0; i < 2; ++i) session->run(train);
  sv.stop();
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("stop() saves no checkpoint: steps 4 to 5 are not saved. Call "));
}

TEST_F(LifecycleTest, SoDoesTheEndOfASupervisorThatWasNotStopped) {
  add_step(7);
  const LogRecorder log;
  {
    Supervisor sv(options);
    const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
    session->run(train);
    EXPECT_EQ(log.text(LogLevel::kWarning), "");
  }
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("saves no checkpoint: step 8 is not saved"));
}

TEST_F(LifecycleTest, AStopIsQuietWhereNothingIsLost) {
  add_step(7);
  options.save_model_secs = Seconds{0};
  const LogRecorder log;
  Supervisor sv(options);
  auto session = sv.prepare_or_wait_for_session();
  sv.stop();
  sv.stop();
  session = sv.prepare_or_wait_for_session();
  session->run(train);
  sv.saver()->save(*session, sv.save_path(), step);
  sv.stop();
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
}

TEST_F(LifecycleTest, AStopSavesWhereThatIsAskedFor) {  // unlike SV-64
  add_step(7);
  options.save_model_secs = Seconds{0};
  const LogRecorder log;
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  session->run(train);
  sv.stop({.save_checkpoint = true});
  EXPECT_TRUE(exists(sv.save_path() + "-8"));
  EXPECT_EQ(described_events().back(), "STOP");
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
  EXPECT_NO_THROW(sv.stop({.save_checkpoint = true}));
}

TEST_F(LifecycleTest, AStopAfterAnErrorSavesNothing) {
  add_step();
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  session->run(train);
  sv.request_stop(std::make_exception_ptr(InternalError("failed")));
  EXPECT_THROW(sv.stop({.save_checkpoint = true}), InternalError);
  EXPECT_FALSE(exists(sv.save_path() + "-1"));
}

TEST_F(LifecycleTest, ASecondManagedSessionBesideTheFirstIsRefusedAndLeavesItAlone) {
  Supervisor sv(options);
  const auto message = [&]() -> std::string {
    try {
      sv.managed_session([](Session&) {});
      return "it was allowed";
    } catch (const FailedPreconditionError& error) {
      return error.what();
    }
  };
  sv.managed_session([&](Session& session) {
    std::string from_another_thread;
    std::thread([&] { from_another_thread = message(); }).join();
    EXPECT_THAT(from_another_thread, HasSubstr("managed_session() of this Supervisor is already running"));
    EXPECT_THAT(message(), HasSubstr("needs a Supervisor and a logdir of its own"));
    EXPECT_FALSE(sv.should_stop());
    EXPECT_NO_THROW(session.run(v));
  });
  EXPECT_NO_THROW(sv.managed_session([](Session&) {}));
}

TEST_F(LifecycleTest, ABasenameThatIsNoNameOfAFileIsRefused) {
  for (const std::string name : {"", "deep/model.ckpt", "/model.ckpt"}) {
    options.checkpoint_basename = name;
    EXPECT_THAT(refusal_of([&] { Supervisor sv(options); }),
                HasSubstr("checkpoint_basename is '" + name + "': it must be the name of a file, without '/'"));
  }
}

TEST_F(LifecycleTest, ASupervisorThatTrainedNothingSaysSo) {
  const LogRecorder log;
  std::optional<Supervisor> unused(options);
  unused.reset();
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("there is no checkpoint of this run in " + directory.path() + ". Train in managed_session()"));
  restart();
  const LogRecorder of_used;
  Supervisor(options).managed_session([](Session&) {});
  EXPECT_THAT(of_used.text(LogLevel::kWarning), Not(HasSubstr("no session was trained with")));
}

TEST_F(LifecycleTest, WhyThereIsNoWriterIsInTheLog) {
  const LogRecorder log;
  options.logdir.clear();
  const Supervisor sv(options);
  EXPECT_EQ(sv.summary_writer(), nullptr);
  EXPECT_THAT(log.text(LogLevel::kInfo), HasSubstr("there is no summary writer: SupervisorOptions::logdir is empty"));
}

TEST_F(LifecycleTest, AHomeDirectoryThatNoShellHasFilledInIsRefused) {
  options.logdir = "~/runs/demo";
  EXPECT_THAT(refusal_of([&] { Supervisor sv(options); }), HasSubstr("'~/runs/demo': only a shell expands '~'"));
}

}  // namespace
}  // namespace longhaul
