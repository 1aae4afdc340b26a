#include "longhaul/train/sessions/readiness.h"
#include "longhaul/train/sessions/session_manager_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What makes a model ready, and what is done with one that is.
class ReadyTest : public SessionManagerTest {
 protected:
  Readiness ready(const Output& op) { return check_ready(*make_scripted_session(graph, server), op); }

  // What an earlier session has left on the server.
  void leave(const Variable& variable, float value) {
    make_scripted_session(graph, server)
        ->run(variable.initializer(), {{variable.initial_value(), Tensor::scalar(value)}});
  }
  // A ready operation of the old kind: it returns nothing of interest, and fails where something is not initialised.
  Output assert_initialized() {
    return root.with_control_dependencies({ops::identity(root, v).op(), ops::identity(root, w).op()})
        .add("Const", "assert", {}, {{"value", Tensor::scalar<int32_t>(0)}, {"dtype", kInt32}})
        .output();
  }
};

TEST_F(ReadyTest, TheDefaultsAreThoseOfTheOriginal) {  // SM-1
  const SessionManagerOptions defaults;
  EXPECT_TRUE(defaults.local_init_op.empty());
  EXPECT_FALSE(defaults.ready_op.valid());
  EXPECT_FALSE(defaults.ready_for_local_init_op.valid());
  EXPECT_EQ(defaults.graph, nullptr);
  EXPECT_EQ(defaults.recovery_wait_secs, Seconds{30});
  EXPECT_EQ(defaults.local_init_run_options.timeout, Seconds{0});
  EXPECT_EQ(PrepareOptions().max_wait_secs, Seconds{7200});
}

TEST_F(ReadyTest, NothingAnIntegerOrAnEmptyTensorIsReady) {  // SM-50
  EXPECT_TRUE(ready({}).ready);
  EXPECT_TRUE(ready(ops::constant(root, int32_t{5})).ready);
  EXPECT_TRUE(ready(ops::constant(root, Tensor(kString, {0}))).ready);
  EXPECT_TRUE(ready(ops::constant(root, Tensor(kFloat, {0}))).ready);
}

TEST_F(ReadyTest, ATensorOfAnotherTypeIsReady) {  // unlike SM-50
  EXPECT_TRUE(ready(ops::constant(root, 1.5f)).ready);
  EXPECT_TRUE(ready(ops::constant(root, int64_t{5})).ready);
}

TEST_F(ReadyTest, NamesAreOfWhatIsMissing) {  // SM-50
  const Readiness found = ready(ops::constant(root, Tensor::of<std::string>({"a", "b"})));
  EXPECT_FALSE(found.ready);
  EXPECT_EQ(found.why, "Variables not initialized: a, b");
}

TEST_F(ReadyTest, EmptyStringsNameNothing) {  // unlike SM-50
  EXPECT_TRUE(ready(ops::constant(root, Tensor::of<std::string>({"", ""}))).ready);
  EXPECT_TRUE(ready(ops::constant(root, Tensor::scalar(std::string()))).ready);
  const Readiness found = ready(ops::constant(root, Tensor::of<std::string>({"a", "", "b"})));
  EXPECT_FALSE(found.ready);
  EXPECT_EQ(found.why, "Variables not initialized: a, b");
}

TEST_F(ReadyTest, AScalarTextIsTheReason) {  // unlike SM-50
  const Readiness found = ready(ops::constant(root, Tensor::scalar(std::string("the tables are not there"))));
  EXPECT_FALSE(found.ready);
  EXPECT_EQ(found.why, "the tables are not there");
  EXPECT_THAT(found.missing, ::testing::IsEmpty());
}

TEST_F(ReadyTest, AReadThatFindsNothingIsNotReady) {  // SM-50
  EXPECT_THAT(ready(ops::identity(root, v)).why, HasSubstr("uninitialized value v"));
}

TEST_F(ReadyTest, AnAssertionServesAsReadyOperation) {  // SM-51
  options.ready_op = assert_initialized();
  EXPECT_EQ(value(*manager().prepare_session(prepare), w), 2);
  restart();
  prepare.init_op = ops::no_op(root);
  options.local_init_op = ops::no_op(root);
  EXPECT_THAT(error_of([&] { manager().prepare_session(prepare); }),
              AllOf(HasSubstr("Init operations did not make model ready."), HasSubstr("uninitialized value v")));
  save(1, 7);
  options.local_init_op = w.initializer();
  EXPECT_TRUE(manager().recover_session(prepare).initialized);
}

TEST_F(ReadyTest, AnAssertionServesWhoWaits) {  // SM-51
  options.ready_op = assert_initialized();
  options.local_init_op = {};
  EXPECT_THROW(manager().wait_for_session("", {}, Seconds{3}), DeadlineExceededError);
  leave(v, 5);
  leave(w, 6);
  EXPECT_EQ(value(*manager().wait_for_session("", {}, Seconds{3}), v), 5);
}

TEST_F(ReadyTest, LocalInitialValuesAreComputedFromInitialValues) {  // SM-17
  options.ready_op = {};
  prepare.init_op = {};
  const auto session = manager().prepare_session(prepare);
  EXPECT_EQ(value(*session, w), 2);
  EXPECT_THROW(session->run(v), FailedPreconditionError);
}

TEST_F(ReadyTest, SeveralInitOperationsAreOneRun) {  // SM-19, SM-16
  const Variable x = ops::local_variable(root, "x", ops::constant(root, 3.0f));
  prepare.init_op = OpList({v.initializer(), ops::no_op(root)});
  options.local_init_op = OpList({w.initializer(), x.initializer()});
  options.ready_for_local_init_op = ops::report_uninitialized_variables(root, {v.info()});
  options.ready_op = ops::report_uninitialized_variables(root, {v.info(), w.info(), x.info()});
  const auto session = manager().prepare_session(prepare);
  EXPECT_EQ(value(*session, w), 2);
  EXPECT_EQ(value(*session, x), 3);
}

TEST_F(ReadyTest, AListOfLocalInitOperationsComputesFromTheModel) {  // SM-16
  const auto triple = std::make_shared<HostFunction>(
      [](const std::vector<Tensor>& of) { return std::vector<Tensor>{Tensor::scalar(3 * of[0].item<float>())}; });
  const Output tripled =
      root.add("HostFunction", "triple", {v.info().read},
               {{"function", triple}, {"dtypes", std::vector<DType>{kFloat}}, {"shapes", std::vector<Shape>{Shape{}}}})
          .output();
  const Variable x = ops::local_variable(root, "x", tripled);
  prepare.init_op = v.initializer();
  prepare.init_feed_dict = {{v.initial_value(), Tensor::scalar(1.0f)}};
  options.local_init_op = OpList({w.initializer(), x.initializer()});
  options.ready_for_local_init_op = ops::report_uninitialized_variables(root, {v.info()});
  options.ready_op = ops::report_uninitialized_variables(root, {v.info(), w.info(), x.info()});
  const auto session = manager().prepare_session(prepare);
  EXPECT_EQ(value(*session, v), 1);
  EXPECT_EQ(value(*session, w), 1);
  EXPECT_EQ(value(*session, x), 3);
}

TEST_F(ReadyTest, ALocalInitThatDoesNotSufficeIsNamed) {  // SM-21
  options.ready_for_local_init_op = ops::report_uninitialized_variables(root, {v.info()});
  options.local_init_op = ops::no_op(root, "too_little");
  EXPECT_THAT(error_of([&] { manager().prepare_session(prepare); }),
              AllOf(HasSubstr("Init operations did not make model ready."), HasSubstr("local_init_op: too_little"),
                    HasSubstr("Variables not initialized: w")));
}

TEST_F(ReadyTest, OptionsReachTheLocalInitRun) {  // SM-1
  options.local_init_run_options.timeout = Seconds{17};
  std::vector<double> timeouts;
  options.session_factory = [&](const std::string&, Graph&, const SessionOptions&) {
    auto session = make_scripted_session(graph, server);
    session->before_each_run([&](int, const Session::Request& request) {
      if (request.fetches[0].op == w.initializer()) timeouts.push_back(request.options.timeout.count());
    });
    return session;
  };
  manager().prepare_session(prepare);
  EXPECT_THAT(timeouts, ElementsAre(17));
}

TEST_F(ReadyTest, AModelThatIsReadyIsNotRestoredOver) {  // unlike SM-11
  const std::string prefix = save(1, 7);
  restart();
  leave(v, 5);
  const LogRecorder log;
  SessionManager chief = manager();
  const auto session = chief.prepare_session(prepare);
  EXPECT_EQ(value(*session, v), 5);
  EXPECT_EQ(value(*session, w), 5);  // the local variable was initialised all the same
  EXPECT_EQ(chief.restored_from(), "");
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(prefix));
  EXPECT_THAT(log.text(), HasSubstr("The model is already initialised"));
  EXPECT_TRUE(chief.recover_session(prepare).initialized);
}

TEST_F(ReadyTest, AModelThatIsReadyIsNotInitialised) {  // unlike SM-11
  leave(v, 5);
  prepare.init_fn = [](Session&) { FAIL() << "called"; };
  prepare.checkpoint_dir = directory.path();
  prepare.wait_for_checkpoint = true;
  prepare.max_wait_secs = std::nullopt;
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 5);
}

TEST_F(ReadyTest, AModelOfWhichAPartIsMissingIsRestored) {
  save(1, 7);
  restart();
  leave(w, 6);
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 1);
}

TEST_F(ReadyTest, AReadyOperationThatLooksAtNoVariableTellsNothing) {
  options.ready_op = ops::report_uninitialized_variables(root, {});
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 2);
  options.ready_op = ops::report_uninitialized_variables(root, {w.info()});
  save(1, 7);
  restart();
  leave(w, 6);
  EXPECT_EQ(value(*manager().prepare_session(prepare), v), 1);
}

}  // namespace
}  // namespace longhaul
