// Replicas that make each step together: several sessions of one server, each on its own graph.
#include <atomic>
#include <chrono>

#include "longhaul/base/no_steps_expected.h"
#include "longhaul/runtime/ops/sync_replicas_fixture.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/train/hangs/hang_watch.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

TEST_F(SyncReplicasTest, TwoReplicasMakeAStepWithTheMeanOfTheirGradients) {  // SY-1, SY-6, SY-11
  make(2, 2);
  start();
  at(0).run();
  at(1).run();
  wait_for_step(1);
  const auto expect_first_step = [&] {
    EXPECT_FLOAT_EQ(chief().value(chief().v0), 0 - (0.1f + 0.3f) / 2 * 2);
    EXPECT_FLOAT_EQ(chief().value(chief().v1), 1 - (0.9f + 1.1f) / 2 * 2);
    const Tensor rows = chief().session->run(chief().rows);
    EXPECT_FLOAT_EQ(rows.flat<float>()[0], 3);
    EXPECT_FLOAT_EQ(rows.flat<float>()[1], 4 - (0.1f + 0.3f) / 2 * 2);
  };
  expect_first_step();
  EXPECT_EQ(at(0).local_step(), 0);
  EXPECT_EQ(at(1).local_step(), 0);

  at(0).run();  // with gradients of step 0: they are dropped
  at(1).run();
  EXPECT_EQ(chief().step_now(), 1);
  expect_first_step();
  EXPECT_EQ(at(0).local_step(), 1);
  EXPECT_EQ(at(1).local_step(), 1);
  EXPECT_EQ(counts_of("worker1").dropped, 1);

  auto other = at(1).run_in_background();  // from now on they need each other
  at(0).run();
  other.get();
  EXPECT_EQ(chief().step_now(), 2);
  EXPECT_FLOAT_EQ(chief().value(chief().v0), 0 - 2 * (0.1f + 0.3f) / 2 * 2);
  EXPECT_EQ(counts_of("worker1").dropped, 1);
}

TEST_F(SyncReplicasTest, TheSlowestOfThreeIsSpare) {  // SY-2
  make(3, 2);
  start();
  at(0).run();
  at(2).run();
  wait_for_step(1);
  EXPECT_FLOAT_EQ(chief().value(chief().v0), -(0.1f + 0.5f) / 2 * 2);
  wait_until([&] { return tokens().size() == 3; });

  at(1).run();  // too late for the first step
  EXPECT_FLOAT_EQ(chief().value(chief().v0), -(0.1f + 0.5f) / 2 * 2);
  EXPECT_EQ(at(1).local_step(), 1);
  EXPECT_EQ(counts_of("worker1").dropped, 1);
  at(0).run();
  at(2).run();
  EXPECT_EQ(tokens().size(), 0u);

  auto alone = at(1).run_in_background();
  wait_until([&] { return tokens().waiting() == 1; });
  EXPECT_EQ(chief().step_now(), 1);
  at(2).run();
  alone.get();
  EXPECT_EQ(chief().step_now(), 2);
}

TEST_F(SyncReplicasTest, EachStepPutsATokenForEachReplica) {  // SY-4
  make(1, /*aggregate=*/1, /*total=*/3);
  start();
  EXPECT_EQ(tokens().size(), 1u);
  at(0).run();
  wait_for_step(1);
  wait_until([&] { return tokens().size() == 3; });
  coord_.request_stop();
  coord_.join();
  coord_ = Coordinator();
  start_one(0);  // a chief that starts again: the tokens of before are void
  EXPECT_EQ(tokens().size(), 1u);
}

TEST_F(SyncReplicasTest, AReplicaThatIsLostGivesItsTokenBack) {  // unlike SY-10
  make(2, 2);
  start(/*num_tokens=*/0);
  auto first = at(0).run_in_background();
  at(1).run();
  first.get();
  EXPECT_EQ(tokens().size(), 0u);
  at(1).session->close();
  EXPECT_EQ(tokens().size(), 1u);
  at(0).run();
  EXPECT_EQ(chief().step_now(), 1);
  at(0).run();  // in place of the other
  EXPECT_EQ(chief().step_now(), 2);
  EXPECT_EQ(counts_of("worker0").dropped, 0);
}

TEST_F(SyncReplicasTest, AStepGoesOnWithoutTheReplicasThatAreTooLate) {  // unlike SY-10
  make_with(2, 2, {.wait_secs = Seconds{0.01}, .min_replicas = 1});
  start(/*num_tokens=*/0);
  at(0).run();
  EXPECT_EQ(chief().step_now(), 1);
  EXPECT_EQ(at(0).local_step(), 1);
  EXPECT_FLOAT_EQ(chief().value(chief().v0), -0.1f * 2);
  EXPECT_EQ(counts_of("worker0").dropped, 0);
  wait_until([&] { return tokens().size() == 1; });
  at(1).run();  // with a gradient of step 0; then it has the other token
  EXPECT_EQ(at(1).local_step(), 1);
  EXPECT_EQ(counts_of("worker1").dropped, 1);
}

TEST_F(SyncReplicasTest, AReplicaThatOutlivesItsChiefGoesOnFromTheNextOnes) {  // unlike SY-10
  make(2, 2);
  start(/*num_tokens=*/0);
  for (int step = 0; step < 2; ++step) {
    auto first = at(0).run_in_background();
    at(1).run();
    first.get();
  }
  coord_.request_stop();
  coord_.join();
  coord_ = Coordinator();
  chief().session->run(ops::assign(chief().root, chief().step, ops::constant(chief().root, int64_t{1})));
  start_one(0, /*num_tokens=*/0);  // from a checkpoint of step 1
  at(1).run();                     // with a gradient of step 2, which is dropped
  EXPECT_EQ(at(1).local_step(), 1);
  auto first = at(0).run_in_background();
  at(1).run();
  first.get();
  EXPECT_EQ(chief().step_now(), 2);
  EXPECT_EQ(counts_of("worker1").dropped, 1);
}

TEST_F(SyncReplicasTest, WithFewerReplicasEachComputesSeveralGradients) {  // SY-4
  make(1, /*aggregate=*/2, /*total=*/1);
  start();
  EXPECT_EQ(tokens().size(), 2u);
  at(0).run();
  EXPECT_EQ(chief().step_now(), 0);
  at(0).run();
  wait_for_step(1);
  wait_until([&] { return tokens().size() == 2; });
}

TEST_F(SyncReplicasTest, TheChiefAloneTrainsOnWithTheTokensOfTheStart) {  // SY-10
  make(2, 2);
  start();
  at(0).run();
  at(0).run();
  wait_for_step(1);
  EXPECT_FLOAT_EQ(chief().value(chief().v0), -0.1f * 2);
}

TEST_F(SyncReplicasTest, WithoutTokensTheChiefWaitsForTheOthersAndNoRoundIsStale) {  // SY-10
  make(2, 2);
  start(/*num_tokens=*/0);
  auto first = at(0).run_in_background();
  wait_until([&] { return tokens().waiting() == 1; });
  EXPECT_EQ(chief().step_now(), 0);
  at(1).run();
  first.get();
  EXPECT_EQ(at(0).local_step(), 1);
  auto second = at(0).run_in_background();
  at(1).run();
  second.get();
  EXPECT_EQ(chief().step_now(), 2);
  EXPECT_EQ(counts_of("worker0").dropped, 0);
  EXPECT_EQ(counts_of("worker1").dropped, 0);
}

TEST_F(SyncReplicasTest, ASlowReplicaThatContributesNothingIsNamedInTheLog) {  // unlike SY-10
  std::vector<std::string> warnings;
  const LogSink before = set_log_sink([&](LogLevel level, const std::string& line) {
    if (level == LogLevel::kWarning) warnings.push_back(line);
  });
  make(2, /*aggregate=*/1, /*total=*/2);
  start();
  at(0).run();
  wait_for_step(1);
  int64_t steps = 1;
  for (int round = 0; round < 4; ++round) {
    at(0).run();  // takes a token of the last step, or of one before
    while (counts_of("worker0").counted == steps) at(0).run();
    wait_for_step(++steps);
    at(1).run();  // a step behind
  }
  set_log_sink(before);
  EXPECT_GE(counts_of("worker1").dropped, 2);
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(warnings[0], HasSubstr("worker1: 2 of its 2 gradients were dropped"));
}

TEST_F(SyncReplicasTest, TheChiefSetsTheAccumulatorsAndAllSetTheirLocalStep) {  // SY-8
  make(2, 2);
  chief().session->run(chief().init);
  chief().session->run(ops::assign(chief().root, chief().step, ops::constant(chief().root, int64_t{7})));
  start_one(0);
  start_one(1);
  EXPECT_EQ(at(0).local_step(), 7);
  EXPECT_EQ(at(1).local_step(), 7);
  at(0).run();
  at(1).run();
  wait_for_step(8);
}

TEST_F(SyncReplicasTest, AModelWithoutValuesCannotBeTrained) {  // SY-8
  make(1, 1);
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { start_one(0); }),
              HasSubstr("Init operations did not make model ready for SyncReplicasOptimizer local_init. Init op: "
                        "sync_replicas"));
}

TEST_F(SyncReplicasTest, TooFewTokensAreRefused) {  // SY-8
  make(1, /*aggregate=*/4, /*total=*/2);
  EXPECT_THAT(refusal_of([&] { chief().optimizer.get_init_tokens_op(1); }),
              HasSubstr("Too few tokens to finish the first step: 1 (given) vs 2 (needed)"));
  EXPECT_THAT(refusal_of([&] { chief().optimizer.get_init_tokens_op(-2); }), HasSubstr("-2 (given)"));
  EXPECT_TRUE(chief().optimizer.get_init_tokens_op(2));
  EXPECT_TRUE(chief().optimizer.get_init_tokens_op());
}

TEST_F(SyncReplicasTest, AStopEndsTheChiefsWaitForGradients) {
  make(2, 2);
  start();
  at(0).run();
  coord_.request_stop();
  const Seconds begin = Clock::real().now();
  coord_.join({.stop_grace = Seconds{100}});
  EXPECT_LT((Clock::real().now() - begin).count(), 50);
}

// Its own warnings tell of it, for as long as it takes: the chief may be restored for hours.
TEST_F(SyncReplicasTest, AReplicaThatWaitsForItsChiefIsNoHang) {
  make(2, 2);
  chief().session->run(chief().init);
  auto waits = std::async(std::launch::async, [this] {
    start_one(1);
    at(1).run();
  });
  wait_until([] { return NoStepsExpected::state().now; });
  std::atomic<int> hangs{0};
  const LogSink before = set_log_sink([&](LogLevel, const std::string& line) {
    if (line.starts_with("the training hangs")) ++hangs;
  });
  testing::FakeClock clock;
  {
    const HangWatch watch({.after = Seconds{20}}, clock, {.steps = [] { return uint64_t{0}; }});
    clock.advance_before_hang_watch(Seconds{600});
  }
  set_log_sink(before);
  EXPECT_EQ(hangs, 0);
  start_one(0);
  wait_until([&] { return waits.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_FALSE(NoStepsExpected::state().now);
}

TEST_F(SyncReplicasTest, ASessionThatClosesEndsItsWaitForAToken) {
  make(2, 2);
  start(/*num_tokens=*/0);
  auto waits = at(1).run_in_background();
  wait_until([&] { return tokens().waiting() == 1; });
  at(1).session->close();
  EXPECT_THAT(error_of<CancelledError>([&] { waits.get(); }), HasSubstr("take_token"));
}

// Without a server: what is built.
class SyncReplicasGraphTest : public ::testing::Test {
 protected:
  SyncReplicasOptimizer make(SyncReplicasOptions options = {}) { return {adam_, 2, std::move(options)}; }

  Graph graph_;
  Scope root_{graph_};
  Variable step_ = ops::create_global_step(root_);
  Variable v_ = ops::variable(root_.with_device("/device:CPU:0"), "v", Tensor::scalar(0.f));
  Variable w_ = ops::variable(root_, "w", Tensor::scalar(0.f));
  Output gradient_ = ops::constant(root_, 1.f);
  AdamOptimizer adam_;
};

TEST_F(SyncReplicasGraphTest, WhereThingsAre) {  // SY-5
  SyncReplicasOptimizer optimizer = make();
  optimizer.apply_gradients(root_, {{gradient_, v_}, {{}, w_}}, step_);
  const Operation accumulator = graph_.find_operation("sync_replicas/conditional_accumulator");
  ASSERT_TRUE(accumulator);
  EXPECT_EQ(accumulator.attr<std::string>("shared_name"), "v:0/grad_accum");
  EXPECT_EQ(accumulator.device(), v_.ref().op().device());
  EXPECT_FALSE(graph_.find_operation("sync_replicas/conditional_accumulator_1"));  // a variable without a gradient
  const Operation tokens = optimizer.sync_token_queue().handle().op();
  EXPECT_EQ(tokens.name(), "sync_token_q");
  EXPECT_EQ(tokens.attr<std::string>("shared_name"), "sync_token_q");
  EXPECT_EQ(tokens.attr<int64_t>("capacity"), -1);
  EXPECT_EQ(optimizer.sync_token_queue().dtypes(), std::vector<DType>{kInt64});
  EXPECT_EQ(graph_.find_operation("dummy_queue").attr<std::string>("shared_name"), "dummy_queue");
  ASSERT_EQ(ops::local_variables(graph_).size(), 1u);
  EXPECT_EQ(ops::local_variables(graph_)[0].name(), "sync_rep_local_step");
}

TEST_F(SyncReplicasGraphTest, TheHookNeedsGradientsFirst) {  // SY-3
  SyncReplicasOptimizer optimizer = make();
  SyncReplicasHook hook(optimizer, /*is_chief=*/true);
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { hook.begin(graph_); }),
              HasSubstr("apply_gradient should be called before using the hook"));
  optimizer.apply_gradients(root_, {{gradient_, v_}}, step_);
  hook.begin(graph_);
}

TEST_F(SyncReplicasGraphTest, VariablesAndSlotsAreTheWrappedOptimizers) {  // SY-3
  SyncReplicasOptimizer optimizer = make();
  optimizer.apply_gradients(root_, {{gradient_, v_}}, step_);
  std::vector<std::string> names;
  for (const Variable& variable : optimizer.variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("beta1_power", "beta2_power", "v/Adam", "v/Adam_1"));
  EXPECT_EQ(optimizer.get_slot(v_, "m")->name(), "v/Adam");
}

TEST_F(SyncReplicasGraphTest, SaysWhatIsMissing) {  // SY-9
  SyncReplicasOptimizer optimizer = make();
  EXPECT_THAT(refusal_of([&] { optimizer.apply_gradients(root_, {}, step_); }),
              HasSubstr("Must supply at least one variable"));
  EXPECT_THAT(refusal_of([&] { optimizer.apply_gradients(root_, {{gradient_, v_}}); }),
              HasSubstr("Global step is required to check staleness"));
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { optimizer.get_chief_queue_runner(); }),
              HasSubstr("get_chief_queue_runner() should be called after apply_gradients()."));
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { optimizer.get_init_tokens_op(); }),
              HasSubstr("get_init_tokens_op() should be called after apply_gradients()."));
  EXPECT_THAT(refusal_of([&] { SyncReplicasOptimizer(adam_, 0); }), HasSubstr("replicas_to_aggregate is 0"));
  EXPECT_THAT(refusal_of([&] { SyncReplicasOptimizer(adam_, 2, {.wait_secs = Seconds{1}}); }),
              HasSubstr("wait_secs is 1 and min_replicas 0: to make steps without late replicas, set both"));
  EXPECT_THAT(refusal_of([&] { SyncReplicasOptimizer(adam_, 2, {.min_replicas = 1}); }), HasSubstr("set both"));
  EXPECT_THAT(refusal_of([&] { SyncReplicasOptimizer(adam_, 2, {.wait_secs = Seconds{1}, .min_replicas = 3}); }),
              HasSubstr("min_replicas to 2 (replicas_to_aggregate) at most"));
}

TEST_F(SyncReplicasGraphTest, AllReplicasOfAGraphTrainTheSameVariables) {
  SyncReplicasOptimizer optimizer = make();
  optimizer.apply_gradients(root_, {{gradient_, v_}}, step_);
  EXPECT_THAT(refusal_of([&] { optimizer.apply_gradients(root_, {{gradient_, w_}}, step_); }),
              HasSubstr("each replica needs a gradient of the same variables"));
  optimizer.apply_gradients(root_, {{gradient_, v_}}, step_);
  EXPECT_EQ(optimizer.local_step().name(), "sync_rep_local_step_1");
}

TEST_F(SyncReplicasGraphTest, NothingIsChangedBeforeTheGradientsArePushed) {
  SyncReplicasOptimizer optimizer = make();
  const Operation moved = ops::assign_add(root_, w_, gradient_, "moved").op();
  const Output late = ops::identity(root_.with_control_dependencies({moved}), gradient_);
  EXPECT_THAT(refusal_of([&] { optimizer.apply_gradients(root_, {{late, v_}}, step_); }),
              HasSubstr("moved (AssignAdd) changes w before the gradients are pushed"));
}

}  // namespace
}  // namespace longhaul
