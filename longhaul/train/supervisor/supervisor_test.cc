#include "longhaul/train/supervisor/supervisor.h"

#include <cmath>

#include "longhaul/proto/serialize.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ScriptedSession;

// How a Supervisor is made, and how its sessions begin and end.
class SupervisorTest : public SupervisorFixture {
 protected:
  Variable v = ops::variable(root, "v", Tensor::of<int32_t>({1, 2, 3}));
  std::vector<int32_t> values(Session& session, const Variable& variable) {
    const Tensor tensor = session.run(variable);
    return {tensor.flat<int32_t>().begin(), tensor.flat<int32_t>().end()};
  }
};

TEST_F(SupervisorFixture, AGraphWithoutVariablesRuns) {  // SV-20
  const Output c = ops::constant(root, 7.0f);
  Supervisor sv(options);
  EXPECT_EQ(sv.saver(), nullptr);
  const auto session = sv.prepare_or_wait_for_session();
  for (int i = 0; i < 10; ++i) session->run(c);
  session->close();
  sv.stop();
}

TEST_F(SupervisorTest, ANegativeNumberIsRefused) {
  for (const auto& set : {+[](SupervisorOptions& all) { all.save_model_secs = Seconds{-1}; },
                          +[](SupervisorOptions& all) { all.save_model_secs = Seconds{std::nan("")}; },
                          +[](SupervisorOptions& all) { all.save_summaries_secs = Seconds{-1}; },
                          +[](SupervisorOptions& all) { all.services.digest_every_n_steps = -1; },
                          +[](SupervisorOptions& all) { all.services.saves.max_failed_saves = -1; },
                          +[](SupervisorOptions& all) { all.services.saves.first_wait = Seconds{-1}; }}) {
    Graph other;
    SupervisorOptions wrong{.graph = &other};
    set(wrong);
    EXPECT_THROW(Supervisor{wrong}, InvalidArgumentError);
  }
}

TEST_F(SupervisorTest, AfterTheManagedSessionItIsStopped) {  // SV-21
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    EXPECT_FALSE(sv.should_stop());
    session.run(v);
  });
  EXPECT_TRUE(sv.should_stop());
}

TEST_F(SupervisorTest, TheBodysErrorComesOut) {  // SV-22
  Supervisor sv(options);
  int steps = 0;
  EXPECT_THAT(error_of([&] {
                sv.managed_session([&](Session&) {
                  ++steps;
                  throw InternalError("failing here");
                });
              }),
              HasSubstr("failing here"));
  EXPECT_TRUE(sv.should_stop());
  EXPECT_EQ(steps, 1);
}

TEST_F(SupervisorTest, AnErrorInTheLoopComesOutAsItIsAndTheLoopIsNotEnteredAgain) {  // SV-22
  struct OwnError : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  Supervisor sv(options);
  int last = -1;
  try {
    sv.managed_session([&](Session& session) {
      for (int i = 0; !sv.should_stop(); ++i) {
        last = i;
        if (i == 1) throw OwnError("failing here");
        session.run(v);
      }
    });
    ADD_FAILURE() << "no error";
  } catch (const OwnError& error) {
    EXPECT_STREQ(error.what(), "failing here");
  }
  EXPECT_TRUE(sv.should_stop());
  EXPECT_EQ(last, 1);
}

TEST_F(SupervisorTest, TheEndOfTheInputIsNoError) {  // SV-23
  Supervisor sv(options);
  sv.managed_session([&](Session&) { throw OutOfRangeError("no more"); });
  EXPECT_TRUE(sv.should_stop());
}

TEST_F(SupervisorTest, ThreadsEndBeforeTheSessionCloses) {  // SV-24
  class ClosingSession : public ScriptedSession {
   public:
    ClosingSession(Graph& graph, bool& is_closed) : ScriptedSession(graph), is_closed_(is_closed) {}
    void close() override {
      is_closed_ = true;
      throw InternalError("errors of closing are nobody's business");
    }

   private:
    bool& is_closed_;
  };
  bool is_closed = false, was_closed_for_thread = true;
  install_session_factory([&](const std::string&, Graph& made_for, const SessionOptions&) {
    return std::make_unique<ClosingSession>(made_for, is_closed);
  });
  options.logdir.clear();
  Supervisor sv(options);
  sv.managed_session([&](Session&) {
    sv.coord().start_thread("watcher", [&] {
      while (!sv.should_stop()) std::this_thread::yield();
      was_closed_for_thread = is_closed;
    });
  });
  EXPECT_FALSE(was_closed_for_thread);
  EXPECT_TRUE(is_closed);
}

TEST_F(SupervisorTest, AServicesErrorStopsTheBody) {
  Supervisor sv(options);
  EXPECT_THAT(error_of([&] {
                sv.managed_session([&](Session&) {
                  sv.loop(std::nullopt, [] { throw InternalError("service"); });
                  while (!sv.should_stop()) std::this_thread::yield();
                });
              }),
              HasSubstr("service"));
}

TEST_F(SupervisorTest, AStoppedOneCanPrepareAgain) {  // SV-27
  Supervisor sv(options);
  for (int i = 0; i < 2; ++i) {
    const auto session = sv.prepare_or_wait_for_session();
    EXPECT_FALSE(sv.should_stop());
    sv.stop();
    EXPECT_TRUE(sv.should_stop());
  }
}

TEST_F(SupervisorTest, MasterAndConfigReachTheSession) {  // SV-28
  Supervisor sv(options);
  sv.managed_session([](Session&) {}, {.master = "grpc://here", .config = {.device_count = {{"CPU", 2}}}});
  EXPECT_EQ(last_master, "grpc://here");
  EXPECT_EQ(last_config.device_count.at("CPU"), 2);
}

TEST_F(SupervisorTest, WithoutALogdirItInitialisesAllTheSame) {  // SV-29, SV-30
  options.logdir.clear();
  Supervisor sv(options);
  EXPECT_EQ(sv.save_path(), "");
  sv.managed_session([&](Session& session) { EXPECT_THAT(values(session, v), ElementsAre(1, 2, 3)); });
}

TEST_F(SupervisorTest, AnInitFunctionReplacesTheInitOperation) {  // SV-30
  options.init_op = kNone;
  options.init_fn = [&](Session& session) { session.run(v.initializer()); };
  Supervisor sv(options);
  EXPECT_TRUE(sv.init_op().empty());
  sv.managed_session([&](Session& session) { EXPECT_THAT(values(session, v), ElementsAre(1, 2, 3)); });
}

TEST_F(SupervisorTest, FeedsReachTheInitOperation) {  // SV-30
  options.init_feed_dict = {{v.initial_value(), Tensor::of<int32_t>({4, 5, 6})}};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { EXPECT_THAT(values(session, v), ElementsAre(4, 5, 6)); });
}

TEST_F(SupervisorFixture, LocalVariablesAndTablesAreInitialisedInEverySession) {  // SV-31
  const Variable local = ops::local_variable(root, "local", ops::constant(root, Tensor::of<int32_t>({1, 2, 3})));
  const Variable table = ops::local_variable(root, "table", ops::constant(root, 0.0f));
  graph.add_to_collection(collections::kTableInitializers, ops::assign(root, table, ops::constant(root, 5.0f)).op());
  options.init_op = kNone;
  Supervisor sv(options);
  EXPECT_EQ(sv.saver(), nullptr);
  sv.managed_session([&](Session& session) {
    EXPECT_EQ(session.run(local).num_elements(), 3);
    session.run(table);
  });
}

TEST_F(SupervisorTest, WhatStaysUninitialisedIsNamed) {  // SV-32
  options.init_op = ops::no_op(root);
  Supervisor sv(options);
  EXPECT_THAT(error_of([&] { sv.prepare_or_wait_for_session(); }), HasSubstr("Variables not initialized: v"));
}

TEST_F(SupervisorTest, ALocalVariableThatStaysUninitialisedIsNamed) {  // SV-32
  ops::local_variable(root, "w", v);
  options.local_init_op = ops::no_op(root);
  Supervisor sv(options);
  EXPECT_THAT(error_of([&] { sv.prepare_or_wait_for_session(); }), HasSubstr("Variables not initialized: w"));
  EXPECT_THROW(sv.prepare_or_wait_for_session(), FailedPreconditionError);
}

TEST_F(SupervisorTest, WhatIsSwitchedOffIsOff) {  // SV-4
  options.ready_op = options.summary_op = options.global_step = kNone;
  options.init_op = options.local_init_op = kNone;
  options.saver = kNone;
  options.summary_writer = kNone;
  options.init_fn = [](Session&) {};
  Supervisor sv(options);
  EXPECT_EQ(sv.saver(), nullptr);
  EXPECT_EQ(sv.summary_writer(), nullptr);
  sv.managed_session([&](Session& session) { EXPECT_THROW(session.run(v), FailedPreconditionError); });
  EXPECT_THAT(event_files(directory.path()), IsEmpty());
}

TEST_F(SupervisorTest, WithoutAnInitOperationTheModelIsNotReady) {  // unlike SV-4
  options.init_op = kNone;
  Supervisor sv(options);
  EXPECT_THAT(
      error_of([&] { sv.prepare_or_wait_for_session(); }),
      AllOf(HasSubstr("Init operations did not make model ready. init_op: none, init_fn: none, local_init_op: "),
            HasSubstr("error: Variables not initialized: v")));
  EXPECT_THROW(sv.prepare_or_wait_for_session(), FailedPreconditionError);
}

TEST_F(SupervisorTest, WithoutASaverNothingIsSaved) {  // SV-4
  options.saver = kNone;
  Supervisor sv(options);
  sv.managed_session([](Session&) {});
  EXPECT_FALSE(exists(sv.save_path()));
}

TEST_F(SupervisorTest, TheFirstOfACollectionIsTaken) {  // SV-2
  const Operation first = ops::no_op(root, "first");
  graph.add_to_collection(collections::kInitOp, first);
  graph.add_to_collection(collections::kInitOp, ops::no_op(root, "second"));
  const LogRecorder log;
  Supervisor sv(options);
  EXPECT_THAT(sv.init_op().operations(), ElementsAre(first));
  EXPECT_THAT(log.text(LogLevel::kInfo), HasSubstr("Found 2 init_op operations. Returning the first one."));
}

TEST_F(SupervisorTest, ASecondSupervisorFindsWhatTheFirstAdded) {  // SV-2, SV-5
  const Supervisor first(options);
  const int operations = graph.num_operations();
  Supervisor second(options);
  EXPECT_EQ(graph.num_operations(), operations);
  second.managed_session([&](Session& session) { session.run(v); });
  EXPECT_TRUE(exists(second.save_path()));
}

TEST_F(SupervisorTest, TheGraphIsFinalized) {  // SV-5
  const Supervisor sv(options);
  EXPECT_THAT(error_of([&] { ops::no_op(root); }), HasSubstr("Graph is finalized and cannot be modified"));
}

TEST_F(SupervisorTest, TheMetaGraphIsThatOfTheConstruction) {  // SV-5
  Supervisor sv(options);
  const std::string constructed = proto::serialize(sv.saver()->export_meta_graph());
  graph.unfinalize();
  ops::no_op(root, "later");
  graph.finalize();
  EXPECT_NE(proto::serialize(sv.saver()->export_meta_graph()), constructed);
  sv.managed_session([](Session&) {});
  EXPECT_EQ(events()[2].meta_graph_def(), constructed);
}

TEST_F(SupervisorFixture, TheStepCounterIsFound) {  // SV-9
  add_step(287);
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { EXPECT_EQ(session.run(sv.global_step()).item<int64_t>(), 287); });
}

TEST_F(SupervisorFixture, AStepCounterThatIsNoIntegerIsNone) {  // SV-3
  ops::variable(root, "global_step", Tensor::scalar(1.0f));
  const LogRecorder log;
  const Supervisor sv(options);
  EXPECT_FALSE(sv.global_step().valid());
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("Found 'global_step' is not an int type: float"));
}

TEST_F(SupervisorFixture, AStepCounterOfAnyShapeIsTaken) {  // SV-3
  ops::variable(root, "global_step", Tensor::of<int64_t>(Shape{3, 4}, std::vector<int64_t>(12)), {.trainable = false});
  const LogRecorder log;
  const Supervisor sv(options);
  EXPECT_EQ(sv.global_step(), graph.output("global_step:0"));
  EXPECT_THAT(log.text(), ::testing::Not(HasSubstr("is not an int type")));
}

TEST_F(SupervisorTest, AGivenSessionManagerIsUsed) {  // SV-10
  SessionManager manager({.graph = &graph, .local_init_op = ops::no_op(root)});
  options.session_manager = &manager;
  options.logdir.clear();
  options.init_op = kNone;
  Supervisor sv(options);
  EXPECT_EQ(&sv.session_manager(), &manager);
  sv.managed_session([&](Session& session) { EXPECT_THROW(session.run(v), FailedPreconditionError); });
}

TEST_F(SupervisorTest, TheDefaultsAreThoseOfTheOriginal) {  // SV-1, SV-7, SV-11
  Supervisor sv({.graph = &graph, .logdir = directory.path()});
  EXPECT_TRUE(sv.is_chief());
  EXPECT_EQ(sv.save_summaries_secs(), Seconds{120});
  EXPECT_EQ(sv.save_model_secs(), Seconds{600});
  EXPECT_EQ(sv.save_path(), directory.file("model.ckpt"));
  EXPECT_TRUE(sv.ready_op().valid());
  EXPECT_FALSE(sv.ready_for_local_init_op().valid());
  EXPECT_FALSE(sv.summary_op().valid());
  EXPECT_NE(sv.summary_writer(), nullptr);
}

TEST_F(SupervisorTest, TheLogdirIsMadeAtOnceAndItsEventFileAtTheFirstEvent) {  // SV-7
  options.logdir = directory.file("runs/one");
  Supervisor sv(options);
  EXPECT_EQ(sv.save_path(), options.logdir + "/model.ckpt");
  EXPECT_TRUE(FileSystem::real().is_directory(options.logdir));
  EXPECT_THAT(event_files(options.logdir), IsEmpty());
  sv.managed_session([](Session&) {});
  EXPECT_EQ(event_files(options.logdir).size(), 1u);
}

TEST_F(SupervisorTest, WhatItIsMadeOfCanBeAskedFor) {  // SV-11
  add_step(3);
  const Output ready = ops::constant(root, Tensor(kString, {0}), "my_ready");
  const Operation init = ops::no_op(root, "my_init");
  Saver saver({.graph = &graph});
  FileWriter writer(directory.path());
  SessionManager manager({.graph = &graph});
  options.ready_op = ready;
  options.ready_for_local_init_op = ready;
  options.summary_op = ready;
  options.init_op = init;
  options.init_feed_dict = {{v.initial_value(), Tensor::of<int32_t>({4, 5, 6})}};
  options.saver = &saver;
  options.summary_writer = &writer;
  options.session_manager = &manager;
  options.save_summaries_secs = Seconds{7};
  options.save_model_secs = Seconds{8};
  const Supervisor sv(options);
  EXPECT_TRUE(sv.is_chief());
  EXPECT_EQ(&sv.session_manager(), &manager);
  EXPECT_FALSE(sv.coord().should_stop());
  EXPECT_THAT(sv.init_op().operations(), ElementsAre(init));
  ASSERT_EQ(sv.init_feed_dict().size(), 1u);
  EXPECT_TRUE(identical(sv.init_feed_dict()[0].second, Tensor::of<int32_t>({4, 5, 6})));
  EXPECT_EQ(sv.ready_op(), ready);
  EXPECT_EQ(sv.ready_for_local_init_op(), ready);
  EXPECT_EQ(sv.summary_op(), ready);
  EXPECT_EQ(sv.summary_writer(), &writer);
  EXPECT_EQ(sv.saver(), &saver);
  EXPECT_EQ(sv.global_step(), graph.output("global_step:0"));
  EXPECT_EQ(sv.save_summaries_secs(), Seconds{7});
  EXPECT_EQ(sv.save_model_secs(), Seconds{8});
  EXPECT_EQ(sv.save_path(), directory.file("model.ckpt"));
}

TEST_F(SupervisorTest, ALogdirThatCannotBeWrittenIsAnErrorAtOnce) {
  write_file_atomically(FileSystem::real(), directory.file("file"), "");
  options.logdir = directory.file("file");
  EXPECT_THAT(error_of([&] { Supervisor{options}; }), HasSubstr("logdir " + options.logdir + " cannot be written to"));
}

// Those beside the chief.
class OtherSupervisorTest : public SupervisorFixture {
 protected:
  OtherSupervisorTest() { options.is_chief = false; }
  Variable v = ops::variable(root.with_device("/job:localhost"), "v", Tensor::scalar(1.0f));
};

TEST_F(OtherSupervisorTest, VariablesNeedADevice) {  // SV-8
  EXPECT_NO_THROW(Supervisor{options});
  Graph undecided;
  ops::variable(Scope(undecided), "w", Tensor::scalar(1.0f));
  options.graph = &undecided;
  EXPECT_THAT(error_of([&] { Supervisor{options}; }), HasSubstr("must have their device set: w"));
}

TEST_F(OtherSupervisorTest, TheyWriteNothing) {  // SV-6, SV-43
  testing::TemporaryDirectory elsewhere;
  FileWriter writer(elsewhere.path());
  options.summary_writer = &writer;
  options.save_summaries_secs = Seconds{7};
  options.save_model_secs = Seconds{8};
  Supervisor sv(options);
  EXPECT_EQ(sv.save_path(), "");
  EXPECT_EQ(sv.summary_writer(), nullptr);
  EXPECT_EQ(sv.save_summaries_secs(), Seconds{0});
  EXPECT_EQ(sv.save_model_secs(), Seconds{0});
  ScriptedSession session(graph);
  EXPECT_THAT(error_of([&] { sv.summary_computed(session, ""); }),
              HasSubstr("Writing a summary requires a summary writer."));
  EXPECT_THAT(error_of([&] { sv.start_standard_services(nullptr); }),
              HasSubstr("Only chief supervisor can start standard services."));
}

TEST_F(OtherSupervisorTest, TheyWaitForTheChief) {  // SV-6, SV-27, SV-33
  Supervisor other(options);
  make_scripted_session(graph, server)->run(v.initializer());
  const auto session = other.prepare_or_wait_for_session();
  EXPECT_EQ(session->run(v).item<float>(), 1);
  other.stop();
  EXPECT_TRUE(other.should_stop());
  EXPECT_THAT(FileSystem::real().list(directory.path()), IsEmpty()) << "they have no logdir, whatever was passed";
}

}  // namespace
}  // namespace longhaul
