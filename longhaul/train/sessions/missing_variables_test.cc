// Savers that leave out global variables.
#include "longhaul/train/sessions/missing_variables.h"

#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A model whose program saves the weights alone: Saver(<only some variables>).
class SomeVariables : public SupervisorFixture {
 protected:
  SomeVariables() {
    add_step();
    saver = std::make_shared<Saver>(SaverOptions{.graph = &graph, .var_list = std::vector<SaveEntry>{weights, step}});
    options.saver = saver;
    options.save_model_secs = Seconds{0};
    train = ops::group(root,
                       {train, ops::assign_add(root, weights, ops::constant(root, 1.0f)).op(),
                        ops::assign_add(root, momentum, ops::constant(root, 1.0f)).op()},
                       "train");
  }
  std::vector<std::string> missing(const ReadinessOps& ops) { return missing_after_restore(graph, *saver, ops); }
  ReadinessOps all_variables() {
    return {.ready_op = ops::report_uninitialized_variables(root, ops::global_variables(graph))};
  }
  float value(Session& session, const Variable& variable) { return session.run(variable).item<float>(); }

  Variable weights = ops::variable(root, "weights", Tensor::scalar(2.0f));
  Variable momentum = ops::variable(root, "momentum", Tensor::scalar(0.5f));
  std::shared_ptr<Saver> saver;
};

TEST_F(SomeVariables, AreTheOnesThatARestartWouldHave) {
  EXPECT_THAT(missing(all_variables()), ElementsAre("momentum"));
  EXPECT_THAT(missing({.ready_op = ops::report_uninitialized_variables(root, {weights.info()})}), IsEmpty())
      << "nobody asks for the other one";
  EXPECT_THAT(missing({}), IsEmpty());
}

TEST_F(SomeVariables, WithALocalInitOpThatSetsTheOthersLackNothing) {
  ReadinessOps ops = all_variables();
  ops.local_init_op = {momentum.initializer()};
  EXPECT_THAT(missing(ops), IsEmpty());
  ops.ready_for_local_init_op = ops.ready_op;
  EXPECT_THAT(missing(ops), ElementsAre("momentum")) << "it is asked for before it is set";
}

TEST_F(SomeVariables, AreWarnedOfWhenTheModelIsInitialised) {
  const LogRecorder log;
  Supervisor(options).managed_session([&](Session& session) { session.run(train); });
  EXPECT_THAT(log.text(LogLevel::kWarning),
              AllOf(HasSubstr("the saver does not save 1 of the global variables: momentum."),
                    HasSubstr("initialize_missing"), HasSubstr("local_init_op")));
  restart();
  EXPECT_THAT(
      error_of([&] { Supervisor(options).managed_session([](Session&) {}); }),
      AllOf(HasSubstr("did not make model ready"), HasSubstr("Variables not initialized: momentum"),
            HasSubstr(". " + directory.file("model.ckpt-1") + " does not have them"), HasSubstr("initialize_missing")));
}

TEST_F(SomeVariables, AreNotWarnedOfWhereAllAreSaved) {
  options.saver = kUseDefault;
  const LogRecorder log;
  Supervisor(options).managed_session([](Session&) {});
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("the saver does not save")));
}

// Killed after each second step; the session's variables are gone.
TEST_F(SomeVariables, OfATrainingThatIsKilledAndResumedAreRestoredAndTheOthersInitialised) {
  options.chief.recovery.initialize_missing = true;
  const LogRecorder log;
  for (int run = 0; run < 3; ++run) {
    restart();
    Supervisor sv(options);
    const auto session = sv.prepare_or_wait_for_session();
    EXPECT_EQ(session->run(step).item<int64_t>(), run);
    EXPECT_EQ(value(*session, weights), 2.0f + static_cast<float>(run));
    EXPECT_EQ(value(*session, momentum), 0.5f) << "as it was at the very first";
    session->run(train);
    saver->save(*session, sv.save_path(), step);
    session->run(train);
  }
  EXPECT_THAT(log.text(), AllOf(HasSubstr("does not have these variables, so their initializers ran: momentum"),
                                Not(HasSubstr("the saver does not save"))));
}

TEST_F(SomeVariables, ThatAreRestoredAreNotInitialised) {
  options.chief.recovery.initialize_missing = true;
  options.saver = kUseDefault;
  for (int run = 0; run < 2; ++run) {
    restart();
    Supervisor(options).managed_session([&](Session& session) {
      EXPECT_EQ(value(session, momentum), 0.5f + static_cast<float>(run));
      session.run(train);
    });
  }
}

TEST_F(SomeVariables, AreInitialisedAlsoWhereTheProgramHasItsOwnSessionManager) {
  SessionManager own({.graph = &graph, .ready_op = all_variables().ready_op});
  options.session_manager = &own;
  options.chief.recovery.initialize_missing = true;
  for (int run = 0; run < 2; ++run) {
    restart();
    Supervisor(options).managed_session([&](Session& session) {
      EXPECT_EQ(value(session, weights), 2.0f + static_cast<float>(run));
      EXPECT_EQ(value(session, momentum), 0.5f);
      session.run(train);
    });
  }
}

class SomeVariablesOfAMonitoredSession : public MonitoredFixture {
 protected:
  void run() {
    MonitoredSession session(options);
    train_once(session);
    saver->save(*last_session, directory.file("model.ckpt"), step);
    session.close();
  }
  Variable other = ops::variable(root, "other", Tensor::scalar(0.5f));
  std::shared_ptr<Saver> saver =
      std::make_shared<Saver>(SaverOptions{.graph = &graph, .var_list = std::vector<SaveEntry>{step}});
};

TEST_F(SomeVariablesOfAMonitoredSession, AreWarnedOfAndCanBeInitialised) {
  for (const bool initialize_missing : {false, true}) {
    options.session_creator = std::make_shared<ChiefSessionCreator>(
        ChiefSessionCreatorOptions{.graph = &graph,
                                   .scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.saver = saver}),
                                   .checkpoint_dir = directory.path(),
                                   .recovery = {.initialize_missing = initialize_missing},
                                   .coordinator = coordinator});
    const LogRecorder log;
    if (!initialize_missing) {
      run();
      EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("global variables: other."));
      EXPECT_THROW(run(), FailedPreconditionError);
    } else {
      EXPECT_NO_THROW(run());
    }
  }
}

TEST_F(SomeVariablesOfAMonitoredSession, AreInitialisedWhereTheTrainingsOptionsSayIt) {
  const MonitoredTrainingSessionOptions training{
      .graph = &graph,
      .checkpoint_dir = directory.path(),
      .scaffold = std::make_shared<Scaffold>(ScaffoldOptions{.saver = saver}),
      .chief = {.recovery = {.initialize_missing = true}},
      .coordinator = coordinator};
  for (int64_t run = 0; run < 2; ++run) {
    monitored_training_session(training, [&](MonitoredSession& session) {
      EXPECT_EQ(session.run(step).item<int64_t>(), run);
      EXPECT_EQ(session.run(other).item<float>(), 0.5f);
      session.run(train);
    });
  }
}

TEST_F(SomeVariablesOfAMonitoredSession, AreInitialisedInASingularOneToo) {
  const auto of_saver = [&] { return std::make_shared<Scaffold>(ScaffoldOptions{.saver = saver}); };
  monitored_training_session(
      {.graph = &graph, .checkpoint_dir = directory.path(), .scaffold = of_saver(), .coordinator = coordinator},
      [&](MonitoredSession& session) { session.run(train); });
  SingularMonitoredSession session({.graph = &graph,
                                    .scaffold = of_saver(),
                                    .checkpoint_dir = directory.path(),
                                    .recovery = {.initialize_missing = true},
                                    .coordinator = coordinator});
  EXPECT_EQ(session.run(step).item<int64_t>(), 1);
  EXPECT_EQ(session.run(other).item<float>(), 0.5f);
}

}  // namespace
}  // namespace longhaul
