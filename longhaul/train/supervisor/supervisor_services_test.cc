#include "longhaul/train/supervisor/supervisor_services.h"

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/reporting/step_rate.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// What a Supervisor leaves on the disk.
class ServicesTest : public SupervisorFixture {
 protected:
  Variable v = ops::variable(root, "foo", Tensor::scalar(1.0f));
  const std::string version = "version brain.Event:2";
};

TEST_F(ServicesTest, WithoutAStepCounterThereIsNoStart) {  // SV-50, SV-41
  summary::scalar(root, "v", v);
  Supervisor sv(options);
  sv.managed_session([&](Session&) { wait_for_snapshots(2); });
  EXPECT_THAT(described_events(), ElementsAre(version, "graph", "meta_graph", "summary v=1 @0", "STOP"));
  EXPECT_EQ(BundleReader(FileSystem::real(), sv.save_path()).read("foo").item<float>(), 1);
}

TEST_F(ServicesTest, WithAStepCounterStartComesFirst) {  // SV-51, SV-42, GS-5
  ops::variable(root, "global_step", Tensor::of<int64_t>({123}), {.trainable = false});
  options.clock = &Clock::real();
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    wait_for_snapshots(1);
    eventually([&] { return sv.saver()->last_saved() != ""; });
    sv.summary_writer()->flush();
    eventually([&] {
      sv.summary_writer()->flush();
      return described_events().size() >= 6;
    });
  });
  const auto lines = described_events();
  EXPECT_THAT(std::vector(lines.begin(), lines.begin() + 4), ElementsAre(version, "graph", "meta_graph", "START 123"));
  const auto either = AnyOf(std::string("summary global_step/sec=0 @123"), std::string("CHECKPOINT 123"));
  EXPECT_THAT(std::vector(lines.begin() + 4, lines.end()), ElementsAre(either, either, "STOP"));
  EXPECT_NE(lines[4], lines[5]);
  EXPECT_TRUE(exists(sv.save_path() + "-123"));
}

TEST_F(ServicesTest, TheCheckpointEventHasThePathAndTheTruePrefix) {  // unlike SV-49
  add_step(123);
  Supervisor sv(options);
  sv.managed_session([&](Session&) {});
  for (const proto::Event& event : events()) {
    if (event.session_log().status() != proto::SessionLog::CHECKPOINT) continue;
    EXPECT_EQ(event.session_log().checkpoint_path(), sv.save_path());
    EXPECT_EQ(event.session_log().msg(), sv.save_path() + "-123");
    EXPECT_EQ(event.step(), 123);
    return;
  }
  FAIL() << "no CHECKPOINT";
}

TEST_F(ServicesTest, TheGraphIsWrittenAsItIs) {  // SV-52, SV-53, EV-11
  Supervisor sv(options);
  sv.managed_session([](Session&) {});
  const auto all = events();
  EXPECT_THAT(all[0].file_version(), HasSubstr("brain.Event:2"));
  EXPECT_EQ(all[1].graph_def(), proto::serialize(to_graph_def(graph, true)));
  EXPECT_EQ(all[2].meta_graph_def(), proto::serialize(sv.saver()->export_meta_graph()));
  EXPECT_THAT(read_file(FileSystem::real(), directory.file("graph.pbtxt")),
              AllOf(HasSubstr("name: \"foo\""), HasSubstr("_output_shapes")));
}

// c1 = 1 and so on, as a summary that the body writes.
class OwnSummaryTest : public ServicesTest {
 protected:
  OwnSummaryTest() { options.services.save_at_end = false; }
  void write_twice(Supervisor& sv, bool close) {
    for (int i = 0; i < 2; ++i) {
      sv.managed_session([&](Session& session) { sv.summary_computed(session, session.run(merged)); },
                         {.start_standard_services = false, .close_summary_writer = close});
    }
  }
  Output merged = summary::merge(root, {summary::scalar(root, "c1", ops::constant(root, int32_t{1}))});
};

TEST_F(OwnSummaryTest, AClosedWriterBeginsAnotherFile) {  // SV-60
  Supervisor sv(options);
  write_twice(sv, true);
  const auto files = event_files(directory.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_THAT(described_events(), ElementsAre(version, "graph", "meta_graph", "summary c1=1 @0", "STOP",  //
                                              version, "graph", "meta_graph", "summary c1=1 @0", "STOP"));
}

TEST_F(OwnSummaryTest, AWriterThatIsKeptGoesOn) {  // SV-61
  Supervisor sv(options);
  write_twice(sv, false);
  sv.summary_writer()->close();
  EXPECT_THAT(described_events(), ElementsAre(version, "graph", "meta_graph", "summary c1=1 @0", "summary c1=1 @0"));
}

TEST_F(OwnSummaryTest, TheSessionMayBeClosedBeforeTheStop) {  // SV-62
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  sv.summary_computed(*session, session->run(merged));
  session->close();
  sv.stop();
  EXPECT_THAT(described_events(), ElementsAre(version, "graph", "meta_graph", "summary c1=1 @0", "STOP"));
}

TEST_F(OwnSummaryTest, AWriterOfOnesOwnNeedsNoLogdir) {  // SV-63, SV-44
  FileWriter writer(directory.path());
  add_step();
  options.summary_writer = &writer;
  options.logdir.clear();
  Supervisor sv(options);
  EXPECT_TRUE(sv.summary_op().valid());
  const LogRecorder log;
  const auto session = sv.prepare_or_wait_for_session();
  sv.summary_computed(*session, session->run(merged));
  sv.stop();
  EXPECT_THAT(log.text(LogLevel::kWarning),
              AllOf(HasSubstr("Standard services need a 'logdir'"), HasSubstr("SupervisorOptions::logdir is empty"),
                    HasSubstr("Pass .logdir = \"runs/NAME\""),
                    HasSubstr("managed_session(body, {.start_standard_services = false})")));
  EXPECT_THAT(described_events(), ElementsAre(version, "graph", "meta_graph", "summary c1=1 @0", "STOP"));
}

TEST_F(OwnSummaryTest, WithoutALogdirASummaryIsRefused) {  // SV-45
  options.logdir.clear();
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    const Tensor summary = session.run(merged);
    EXPECT_THAT(error_of([&] { sv.summary_computed(session, summary); }), HasSubstr("requires a summary writer"));
    EXPECT_THROW(sv.summary_computed(session, summary), FailedPreconditionError);
  });
}

TEST_F(OwnSummaryTest, WithoutAWriterCheckpointsAreTakenAndSummariesRefused) {  // SV-46
  options.summary_writer = kNone;
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return exists(sv.save_path()); });
    EXPECT_THAT(error_of([&] { sv.summary_computed(session, session.run(merged)); }),
                HasSubstr("requires a summary writer"));
  });
}

TEST_F(OwnSummaryTest, ASummaryIsOfTheSessionsStepOrOfTheGivenOne) {  // SV-67
  add_step(5);
  Supervisor sv(options);
  sv.managed_session(
      [&](Session& session) {
        const Tensor summary = session.run(merged);
        sv.summary_computed(session, summary);
        sv.summary_computed(session, summary, 9);
        proto::Summary as_proto;
        as_proto.ParseFromString(summary.item<std::string>());
        sv.summary_computed(session, as_proto, 10);
      },
      {.start_standard_services = false});
  const auto lines = described_events();
  EXPECT_THAT(std::vector(lines.begin() + 3, lines.end()),
              ElementsAre("summary c1=1 @5", "summary c1=1 @9", "summary c1=1 @10", "STOP"));
}

TEST_F(ServicesTest, SummariesThatStandAloneAreRunAlone) {  // SV-47
  add_step(4);
  summary::scalar(root, "v", v);
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  sv.managed_session([&](Session&) { wait_for_snapshots(1); });
  EXPECT_THAT(described_events(), ::testing::Contains("summary v=1 @4"));
}

class ExposedSummaries : public SummaryService {
 public:
  using SummaryService::run_loop;
  using SummaryService::SummaryService;
};

TEST_F(ServicesTest, ASummaryAndItsStepAreOfOneRun) {  // SV-47
  add_step(4);
  const Output summary = summary::scalar(root, "v", v);
  std::vector<size_t> fetches;
  std::shared_ptr<testing::ScriptedSession> session = make_scripted_session(graph, server);
  session->before_each_run([&](int, const Session::Request& request) { fetches.push_back(request.fetches.size()); });
  session->run(ops::global_variables_initializer(root));
  ServiceContext context{.coord = Coordinator({.clock = &clock}),
                         .session = session,
                         .writer = std::make_shared<FileWriter>(directory.path()),
                         .summary_op = summary,
                         .global_step = step,
                         .save_summaries_secs = Seconds{120}};
  const LogRecorder log;
  ExposedSummaries(std::make_shared<ServiceContext>(context)).run_loop();
  context.global_step = {};
  ExposedSummaries(std::make_shared<ServiceContext>(context)).run_loop();
  EXPECT_THAT(fetches, ElementsAre(1u, 2u, 1u));
  EXPECT_THAT(log.text(), HasSubstr("Recording summary at step 4.\nRecording summary at step None.\n"));
}

TEST_F(ServicesTest, SummariesThatNeedAFeedComeWithTheNextStep) {
  add_step(4);
  const Output x = ops::placeholder(root, kFloat, {}, "x");
  summary::scalar(root, "loss", x);
  const Operation fed_train = root.with_control_dependencies({ops::identity(root, x).op(), train}).add("NoOp", "fed");
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return last_session->step_fetch_pending(); });
    session.run(fed_train, {{x, Tensor::scalar(0.25f)}});
    session.run(fed_train, {{x, Tensor::scalar(0.5f)}});  // nothing is due any more
  });
  EXPECT_THAT(described_events(), ::testing::Contains(AnyOf("summary loss=0.25 @4", "summary loss=0.25 @5")));
  EXPECT_THAT(described_events(), Not(::testing::Contains(HasSubstr("loss=0.5"))));
}

TEST_F(ServicesTest, WhatIsDueAtTheStopIsDropped) {
  const Output x = ops::placeholder(root, kFloat, {}, "x");
  summary::scalar(root, "loss", x);
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  eventually([&] { return last_session->step_fetch_pending(); });
  sv.stop();
  EXPECT_FALSE(last_session->step_fetch_pending());
}

TEST_F(ServicesTest, StepsASecondAreCounted) {  // unlike SV-48
  add_step(10);
  options.chief.keep_journal = false;  // whose scalar falls due at the same time
  options.save_model_secs = Seconds{0};
  options.save_summaries_secs = Seconds{4};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    const auto written = [&](size_t count) {
      eventually([&] {
        sv.summary_writer()->flush();
        return described_events().size() >= count;
      });
    };
    written(5);
    for (int i = 0; i < 6; ++i) session.run(train);
    clock.advance(Seconds{4});
    written(6);
  });
  const auto lines = described_events();
  EXPECT_EQ(lines[4], "summary global_step/sec=0 @10");
  EXPECT_EQ(lines[5], "summary global_step/sec=1.5 @16");
}

TEST_F(ServicesTest, TheFirstTenSpeedsAreLogged) {  // SV-48
  add_step();
  options.chief.keep_journal = false;
  options.services.save_at_end = false;
  options.save_model_secs = Seconds{0};
  options.save_summaries_secs = Seconds{4};
  Supervisor sv(options);
  const LogRecorder log;
  sv.managed_session([&](Session&) {
    for (size_t speeds = 1; speeds <= 12; ++speeds) {
      eventually([&] {
        sv.summary_writer()->flush();
        return described_events().size() >= 4 + speeds;  // after the version, the graphs and START
      });
      clock.advance(Seconds{4});
    }
  });
  const std::string line = "global_step/sec: ", text = log.text();
  int logged = 0;
  for (size_t at = text.find(line); at != text.npos; at = text.find(line, at + 1)) ++logged;
  EXPECT_EQ(logged, 10);
}

TEST_F(ServicesTest, TheCountersTagKeepsItsScopes) {  // SV-48
  const Variable counter = ops::variable(root.sub("inner"), "steps", Tensor::scalar<int64_t>(0));
  EXPECT_EQ(step_name(counter), "inner/steps");
  EXPECT_EQ(step_name(counter.ref()), "inner/steps");
}

TEST_F(ServicesTest, CheckpointsComeAtTheirTimes) {  // SV-49
  add_step();
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return exists(sv.save_path() + "-0"); });
    session.run(train);
    clock.advance(Seconds{600});
    eventually([&] { return exists(sv.save_path() + "-1"); });
  });
}

class ExposedTimer : public TimerCheckpointService {
 public:
  using TimerCheckpointService::next_interval;
  using TimerCheckpointService::run_loop;
  using TimerCheckpointService::start_loop;
  using TimerCheckpointService::TimerCheckpointService;
};

TEST_F(ServicesTest, CheckpointsThatAreMissedDoNotQueueUp) {
  add_step();
  ExposedTimer service(
      std::make_shared<ServiceContext>(ServiceContext{.coord = Coordinator({.clock = &clock}),
                                                      .session = make_scripted_session(graph, server),
                                                      .saver = std::make_shared<Saver>(SaverOptions{.graph = &graph}),
                                                      .save_model_secs = Seconds{600}}));
  service.start_loop();
  const LogRecorder log;
  clock.advance(Seconds{599});
  EXPECT_EQ(service.next_interval(), Seconds{600});
  clock.advance(Seconds{600 + 599});
  EXPECT_EQ(service.next_interval(), Seconds{600}) << "one is late";
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("skipped")));
  clock.advance(Seconds{1502});
  EXPECT_EQ(service.next_interval(), Seconds{1800}) << "of the three that are late two are left out";
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("skipped checkpoints that were due meanwhile: 2. The last one took 2100 s"));
  EXPECT_EQ(service.next_interval(), Seconds{600});
}

TEST_F(ServicesTest, AfterARestoreTheFirstCheckpointComesAfterOneInterval) {  // unlike SV-41
  add_step(4);
  const auto saver = std::make_shared<Saver>(SaverOptions{.graph = &graph});
  const std::shared_ptr<Session> session = make_scripted_session(graph, server);
  session->run(ops::global_variables_initializer(root));
  const std::string save_path = directory.file("model.ckpt");
  saver->restore(*session, saver->save(*session, save_path, step));
  ExposedTimer service(std::make_shared<ServiceContext>(
      ServiceContext{.coord = Coordinator({.clock = &clock}),
                     .session = session,
                     .saver = saver,
                     .global_step = step,
                     .save_path = save_path,
                     .save_model_secs = Seconds{600},
                     .saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.clock = &clock})}));
  session->run(train);
  service.start_loop();
  service.run_loop();  // at the start
  EXPECT_FALSE(exists(save_path + "-5"));
  service.run_loop();  // an interval later
  EXPECT_TRUE(exists(save_path + "-5"));
}

TEST_F(ServicesTest, ACleanEndIsSaved) {  // unlike SV-65
  add_step();
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    wait_for_snapshots(1);
    for (int i = 0; i < 3; ++i) session.run(train);
    throw OutOfRangeError("no more data");
  });
  EXPECT_TRUE(exists(sv.save_path() + "-3"));
  restart();
  Supervisor again(options);
  again.managed_session([&](Session& session) { EXPECT_EQ(session.run(step).item<int64_t>(), 3); });
  EXPECT_EQ(again.restored_from(), sv.save_path() + "-3");
}

TEST_F(ServicesTest, WithoutAStateFileItMayBeginAnew) {  // CS-6, CS-9
  add_step();
  options.chief.recovery.search_directory = false;
  const auto train_for_two = [&] {
    restart();
    int64_t first = -1;
    Supervisor sv(options);
    sv.managed_session([&](Session& session) {
      first = session.run(step).item<int64_t>();
      for (int i = 0; i < 2; ++i) session.run(train);
    });
    return first;
  };
  EXPECT_EQ(train_for_two(), 0);
  EXPECT_EQ(train_for_two(), 2) << "the state file names it";
  FileSystem::real().remove(directory.file(kDefaultStateFile));
  const LogRecorder log;
  EXPECT_EQ(train_for_two(), 0);
  EXPECT_THAT(
      log.text(LogLevel::kWarning),
      AllOf(HasSubstr("search_directory is off: training starts from scratch, although"), HasSubstr("-4 exists")));
}

TEST_F(ServicesTest, AStepIsSavedOnceAlsoAtTheEnd) {
  add_step(7);
  testing::FaultyFileSystem files;
  options.files = &files;
  Supervisor sv(options);
  sv.managed_session([&](Session&) { eventually([&] { return exists(sv.save_path() + "-7"); }); });
  int checkpoints = 0, commits = 0;
  for (const std::string& line : described_events()) checkpoints += line == "CHECKPOINT 7";
  for (const std::string& operation : files.operations()) {
    commits += operation.starts_with("rename") && operation.ends_with(" model.ckpt-7.index");
  }
  EXPECT_EQ(checkpoints, 1);
  EXPECT_EQ(commits, 1);
}

TEST_F(ServicesTest, AnErrorIsNotSaved) {
  add_step();
  const LogRecorder log;
  Supervisor sv(options);
  EXPECT_THROW(sv.managed_session([&](Session& session) {
    eventually([&] { return exists(sv.save_path() + "-0"); });
    eventually([&] { return sv.saver()->last_saved() != ""; });
    session.run(train);
    throw InternalError("diverged");
  }),
               InternalError);
  EXPECT_FALSE(exists(sv.save_path() + "-1"));
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("training ends with an error, so no last checkpoint is saved: step 1 is in no checkpoint; the "
                        "newest is " +
                        sv.save_path() + "-0"));
}

TEST_F(ServicesTest, StepsAfterTheStopAreSavedToo) {
  add_step();
  options.services.save_at_end = false;
  Supervisor sv(options);
  const LogRecorder log;
  sv.managed_session([&](Session& session) {
    eventually([&] { return sv.saver()->last_saved() == sv.save_path() + "-0"; });
    sv.request_stop();
    eventually([&] {
      session.run(train);
      clock.advance(Seconds{5});
      return sv.saver()->last_saved() != sv.save_path() + "-0";
    });
    const std::string first = sv.saver()->last_saved();
    session.run(train);
    eventually([&] {
      clock.advance(Seconds{600});
      return sv.saver()->last_saved() != first;
    });
  });
  EXPECT_THAT(log.text(LogLevel::kWarning), AllOf(HasSubstr("but the program still makes steps (now step "),
                                                  HasSubstr("end its loop when should_stop() is true")));
}

TEST_F(ServicesTest, ABodyThatMakesNoStepsAfterTheStopMayTakeItsTime) {
  add_step();
  options.save_model_secs = Seconds{1e9};
  Supervisor sv(options);
  const LogRecorder log;
  sv.managed_session([&](Session&) {
    eventually([&] { return exists(sv.save_path() + "-0"); });
    sv.request_stop();
    const int before = last_session->runs();
    eventually([&] {
      clock.advance(Seconds{5});
      return last_session->runs() >= before + 16;  // the looks at the step, and the last work of other services
    });
  });
  EXPECT_THAT(log.text(), Not(HasSubstr("still makes steps")));
}

TEST_F(ServicesTest, TheEndIsNotSavedIfNotWanted) {  // SV-65
  add_step();
  options.services.save_at_end = false;
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    wait_for_snapshots(1);
    session.run(train);
  });
  EXPECT_FALSE(exists(sv.save_path() + "-1"));
}

TEST_F(ServicesTest, NoSecondsNoCheckpoints) {  // SV-40
  options.save_model_secs = Seconds{0};
  options.services.save_at_end = false;
  Supervisor sv(options);
  sv.managed_session([](Session&) {});
  EXPECT_FALSE(exists(sv.save_path()));
}

TEST_F(ServicesTest, TheEndIsSavedAlsoWithoutTheService) {
  add_step();
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { session.run(train); }, {.start_standard_services = false});
  EXPECT_FALSE(exists(sv.save_path() + "-0"));
  EXPECT_TRUE(exists(sv.save_path() + "-1"));
}

TEST_F(ServicesTest, StepsMadeLateInAGracePeriodAreSavedBeforeItsEnd) {
  add_step();
  options.services.save_at_end = false;
  Preemption preemption({.clock = &clock});
  options.chief.preemption = &preemption;
  Supervisor sv(options);
  const LogRecorder log;
  sv.managed_session([&](Session& session) {
    eventually([&] { return sv.saver()->last_saved() == sv.save_path() + "-0"; });
    const Seconds start = clock.now();
    preemption.preempt(Seconds{9});
    eventually([&] {
      if (clock.now() - start < Seconds{8.5}) {
        session.run(train);
        clock.advance(Seconds{0.1});
        std::this_thread::sleep_for(Seconds{0.01});  // a look at the step takes no time of the clock
      }
      return sv.saver()->last_saved() != sv.save_path() + "-0";
    });
    EXPECT_LT((clock.now() - start).count(), 9);
  });
  EXPECT_EQ(preemption.exit_status(), kPreemptedStatus);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("but the program still makes steps"));
}

}  // namespace
}  // namespace longhaul
