#include "longhaul/runtime/plan/prepared.h"

#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/install.h"
#include "longhaul/runtime/plan/plan_builder.h"
#include "longhaul/runtime/plan/run_place.h"
#include "longhaul/session/part_exchange.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// What was sent is received from the same place; what was not is an error, so nothing waits.
class LoopExchange : public PartExchange {
 public:
  void send(int64_t bundle, int64_t slot, Tensor value) override { values[{bundle, slot}] = std::move(value); }
  Tensor receive(int64_t bundle, int64_t slot, const WaitLimits& limits) override {
    limits.cancellation->check();
    const auto found = values.find({bundle, slot});
    if (found == values.end()) throw DeadlineExceededError("nothing came");
    return found->second;
  }

  std::map<std::pair<int64_t, int64_t>, Tensor> values;
};

// A task with a variable v, to which steps add x, and one session of it.
class PreparedTest : public ::testing::Test {
 protected:
  PreparedTest() {
    DirectSession init(graph_, {}, task_);
    init.run(v_.initializer());
  }

  std::shared_ptr<Plan> plan(const std::vector<Fetch>& fetches, const std::vector<Output>& feeds = {},
                             const RunOptions& options = {}) {
    Session::Request request{.feeds = feeds, .options = options};
    for (const Fetch& fetch : fetches) request.fetches.push_back(fetch.resolve(graph_));
    return std::make_shared<Plan>(PlanBuilder(request, *session_).build(), session_);
  }
  Prepared prepare_add(float x, const PartRun& how = {}) {
    const Tensor value = Tensor::scalar(x);
    const Tensor* const feeds[] = {&value};
    return Plan::prepare(add_plan_, feeds, how);
  }
  float v() { return session_->variable(v_.ref().op())->read().to_host().item<float>(); }
  Operation send(const Output& value, const std::string& name) {
    return root_.add("_Send", name, {value},
                     {{"peer", peer_}, {"bundle", int64_t{3}}, {"slot", int64_t{1}}, {"T", kFloat}});
  }
  Output receive(const std::string& name, bool after_write = false) {
    return root_
        .add("_Recv", name, {},
             {{"peer", peer_},
              {"bundle", int64_t{3}},
              {"slot", int64_t{2}},
              {"T", kFloat},
              {"_after_write", after_write}})
        .output();
  }

  const std::string peer_ = "/job:ps/replica:0/task:1";
  const std::shared_ptr<TaskResources> task_ = std::make_shared<TaskResources>();
  Graph graph_;
  Scope root_{graph_};
  Variable v_ = ops::variable(root_, "v", Tensor::scalar(1.f));
  Output x_ = ops::placeholder(root_, kFloat, {}, "x");
  Output add_ = ops::assign_add(root_, v_, x_);
  const std::shared_ptr<SessionState> session_ = std::make_shared<SessionState>(task_);
  const std::shared_ptr<Plan> add_plan_ = plan({add_}, {x_});
};

// Notes where the run is when it asks for a value.
class LookingExchange : public LoopExchange {
 public:
  explicit LookingExchange(const RunPlace& place) : place_(place) {}
  Tensor receive(int64_t bundle, int64_t slot, const WaitLimits& limits) override {
    seen = place_.now() == nullptr ? "nothing" : place_.now()->name();
    return LoopExchange::receive(bundle, slot, limits);
  }
  std::string seen;

 private:
  const RunPlace& place_;
};

TEST_F(PreparedTest, ItsPlaceIsTheOperationThatRuns) {
  const Output received = receive("received");
  const std::shared_ptr<Plan> receiving = plan({received.op()});
  RunPlace place;
  LookingExchange exchange(place);
  exchange.values[{3, 2}] = Tensor::scalar(1.f);
  const Prepared part = Plan::prepare(receiving, {}, {.exchange = &exchange, .place = &place});
  EXPECT_EQ(exchange.seen, "received");
  const Prepared without = Plan::prepare(receiving, {}, {.exchange = &exchange});
  place.leave();
  EXPECT_EQ(place.now(), nullptr);
}

TEST_F(PreparedTest, NothingIsWrittenBeforeTheCommit) {
  Prepared step = prepare_add(2);
  EXPECT_TRUE(step.writes());
  EXPECT_FALSE(step.written());
  EXPECT_EQ(v(), 1);
  std::vector<Tensor> results;
  step.commit(&results);
  EXPECT_TRUE(step.written());
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].item<float>(), 3);
  EXPECT_EQ(v(), 3);
}

TEST_F(PreparedTest, WhatIsDroppedOrAbortedNeverWas) {
  {
    const Prepared dropped = prepare_add(2);
  }
  Prepared aborted = prepare_add(2);
  aborted.abort();
  aborted.abort();
  std::vector<Tensor> results;
  EXPECT_THROW(aborted.commit(&results), FailedPreconditionError);
  EXPECT_EQ(v(), 1);
}

TEST_F(PreparedTest, ACommitIsMadeOnceAndInOrder) {
  std::vector<Tensor> results;
  Prepared step = prepare_add(2);
  EXPECT_THROW(step.finish(&results), FailedPreconditionError);
  step.write();
  EXPECT_THROW(step.write(), FailedPreconditionError);
  step.finish(&results);
  EXPECT_THROW(step.finish(&results), FailedPreconditionError);
  EXPECT_EQ(v(), 3);
}

TEST_F(PreparedTest, PreparedRunsHoldNobodyUp) {
  Prepared first = prepare_add(2), second = prepare_add(10);
  DirectSession other(graph_, {}, task_);
  EXPECT_EQ(other.run(add_, {{x_, Tensor::scalar(100.f)}}).item<float>(), 101);
  EXPECT_EQ(other.run(v_, {}, {.snapshot = true}).item<float>(), 101);
  std::vector<Tensor> results;
  second.commit(&results);
  std::thread([&] { first.commit(&results); }).join();
  EXPECT_EQ(v(), 113);
}

TEST_F(PreparedTest, TheWritesAreCheckedWhenItIsPreparedAndAgainWhenTheyAreMade) {
  const Operation count =
      root_.add("CountUpTo", "count", {ops::create_global_step(root_).ref()}, {{"limit", int64_t{1}}});
  DirectSession init(graph_, {}, task_);
  init.run(ops::global_variables_initializer(root_));
  const std::shared_ptr<Plan> counted = plan({count.output(), add_}, {x_});
  const Tensor one = Tensor::scalar(1.f);
  const Tensor* const feeds[] = {&one};
  Prepared first = Plan::prepare(counted, feeds, {}), second = Plan::prepare(counted, feeds, {});
  std::vector<Tensor> results;
  first.commit(&results);
  EXPECT_THROW(second.commit(&results), OutOfRangeError);
  EXPECT_FALSE(second.written());
  EXPECT_EQ(v(), 2) << "the other variable of the second step is not written either";
  EXPECT_THROW(Plan::prepare(counted, feeds, {}), OutOfRangeError);
  EXPECT_NO_THROW(session_->variables().check_consistent());
}

TEST_F(PreparedTest, ACommitAfterAResetSaysSoAndWritesNothing) {
  Prepared step = prepare_add(2);
  task_->reset({});
  DirectSession fresh(graph_, {}, task_);
  fresh.run(v_.initializer());
  std::vector<Tensor> results;
  EXPECT_THAT([&] { step.commit(&results); },
              ThrowsMessage<AbortedError>(HasSubstr("containers of the task were reset")));
  EXPECT_EQ(fresh.run(v_).item<float>(), 1);
}

TEST_F(PreparedTest, ACommitIsMadeThoughTheRunWasCancelledOrIsLate) {
  Cancellation run(&session_->cancellation());
  Prepared cancelled = prepare_add(2, {.cancellation = &run});
  run.cancel("another part failed");
  cancelled.write();
  Prepared late = prepare_add(3, {.deadline = Clock::real().now() + Seconds{600}});
  session_->cancellation().cancel("the session was closed (Session::Close)");
  late.write();
  EXPECT_EQ(v(), 6);
}

TEST_F(PreparedTest, AStepThatOthersHaveCommittedLeavesNoStateToSave) {
  DirectSession other(graph_, {}, task_);
  Prepared step = prepare_add(2);
  step.abort();
  step.mark_inconsistent("/job:ps/replica:0/task:1 has committed it");
  EXPECT_THAT([&] { other.run(v_, {}, {.snapshot = true}); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("task:1 has committed it")));
  other.run(v_.initializer());
  EXPECT_EQ(other.run(v_, {}, {.snapshot = true}).item<float>(), 1);
}

TEST_F(PreparedTest, AStepThatWritesElsewhereCommitsItsRandomNumbers) {
  const Output shuffled = root_
                              .add("RandomShuffle", "shuffle", {ops::constant(root_, Tensor::of<float>({1, 2, 3, 4}))},
                                   {{"seed", int64_t{1}}, {"seed2", int64_t{2}}})
                              .output();
  const auto stream = session_->random_stream(shuffled.op());
  const std::shared_ptr<Plan> part = plan({shuffled});
  std::vector<Tensor> first, again;
  {
    Prepared dropped = Plan::prepare(part, {}, {.is_step = true});
    EXPECT_TRUE(dropped.changes_state());
    EXPECT_FALSE(dropped.writes());
  }
  EXPECT_EQ(stream->state().steps, 0);
  Plan::prepare(part, {}, {.is_step = true}).commit(&first);
  EXPECT_EQ(stream->state().steps, 1);
  EXPECT_EQ(stream->state().others, 0);
  Prepared other = Plan::prepare(part, {}, {});
  EXPECT_FALSE(other.changes_state());
  other.commit(&again);
  EXPECT_EQ(stream->state().others, 1);
}

TEST_F(PreparedTest, AStepCommittedElsewhereIsCommittedWhileTheDoorIsShut) {
  const std::shared_ptr<Plan> read = plan({v_}, {}, {.snapshot = true});
  Prepared step = prepare_add(2);
  session_->gate().shut("a", Seconds{60}, Seconds{60});
  std::thread committing([&] { step.write(); });  // the master's word, which comes when the door is shut
  step.let_in("a");
  committing.join();
  Prepared snapshot = Plan::prepare(read, {}, {.door = "a"});
  EXPECT_FALSE(session_->gate().is_shut()) << "the take has opened it";
  std::vector<Tensor> results;
  snapshot.commit(&results);
  EXPECT_EQ(results.at(0).item<float>(), 3);
  EXPECT_THROW(prepare_add(2).let_in("a"), AbortedError);
  EXPECT_EQ(v(), 3);
}

TEST_F(PreparedTest, APlanNamesTheContainersThatItWrites) {
  const Operation other =
      root_.add("VariableV2", "w", {}, {{"dtype", kFloat}, {"shape", Shape{}}, {"container", std::string("more")}});
  const Operation assign = root_.add("Assign", "assign", {other.output(), x_}, {});
  EXPECT_THAT(plan({add_, assign.output()}, {x_})->written_containers(), ElementsAre("localhost", "more"));
  EXPECT_THAT(plan({v_})->written_containers(), IsEmpty());
  EXPECT_FALSE(Plan::prepare(plan({v_}), {}, {}).writes());
}

TEST_F(PreparedTest, APartSendsBeforeItsWritesAndReceivesAfterThem) {
  const Operation sent = send(x_, "sent");
  const Output add = ops::assign_add(root_, v_, x_);  // a part is run in the order of its operations
  const Output received = receive("received", /*after_write=*/true);
  LoopExchange exchange;
  const std::shared_ptr<Plan> part = plan({sent, add, received}, {x_});
  const Tensor two = Tensor::scalar(2.f);
  const Tensor* const feeds[] = {&two};
  Prepared step = Plan::prepare(part, feeds, {.exchange = &exchange});
  EXPECT_EQ((exchange.values.at({3, 1}).item<float>()), 2);
  exchange.values[{3, 2}] = Tensor::scalar(9.f);
  std::vector<Tensor> results;
  step.commit(&results);
  EXPECT_EQ(results.at(2).item<float>(), 9);
}

TEST_F(PreparedTest, WhatComesAfterTheWritesMayFailAndTheStepStands) {
  LoopExchange exchange;
  const std::shared_ptr<Plan> part = plan({add_, receive("received", /*after_write=*/true)}, {x_});
  const Tensor two = Tensor::scalar(2.f);
  const Tensor* const feeds[] = {&two};
  Prepared step = Plan::prepare(part, feeds, {.exchange = &exchange});
  std::vector<Tensor> results;
  EXPECT_THROW(step.commit(&results), DeadlineExceededError);
  EXPECT_TRUE(step.written());
  EXPECT_EQ(v(), 3);
}

TEST_F(PreparedTest, ControlEdgesHaveNoValue) {
  const Attrs address{{"peer", peer_}, {"bundle", int64_t{0}}};
  const Operation from = root_.add("_RecvControl", "from", {}, address);
  const Operation to = root_.with_control_dependencies({from}).add("_SendControl", "to", {}, address);
  LoopExchange exchange;
  exchange.values[{0, 0}] = Tensor();
  std::vector<Tensor> results;
  Plan::prepare(plan({to}), {}, {.exchange = &exchange}).commit(&results);
  EXPECT_FALSE(results.at(0).defined());
}

TEST_F(PreparedTest, ARunWithoutOtherPartsRefusesByName) {
  DirectSession alone(graph_, {}, task_);
  const Operation sent = send(x_, "sent");
  EXPECT_THAT([&] { alone.run(sent, {{x_, Tensor::scalar(2.f)}}); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("sent (_Send) exchanges a value with " + peer_)));
}

TEST_F(PreparedTest, AnExchangeThatNamesNoPlaceIsRefused) {
  const auto receives = [&](const std::string& peer, int64_t bundle, int64_t slot) {
    root_.add("_Recv", "r", {}, {{"peer", peer}, {"bundle", bundle}, {"slot", slot}, {"T", kFloat}});
  };
  EXPECT_NO_THROW(receives(peer_, 0, 0));
  EXPECT_THROW(receives("", 0, 0), InvalidArgumentError);
  EXPECT_THROW(receives(peer_, -1, 0), InvalidArgumentError);
  EXPECT_THROW(receives(peer_, 0, -1), InvalidArgumentError);
}

TEST_F(PreparedTest, AValueOfAnotherKindIsNotTaken) {
  LoopExchange exchange;
  const std::shared_ptr<Plan> part = plan({receive("received")});
  for (const Tensor& wrong : {Tensor(), Tensor::scalar(int64_t{1}), Tensor::of<std::string>({"a"})}) {
    exchange.values[{3, 2}] = wrong;
    EXPECT_THROW(Plan::prepare(part, {}, {.exchange = &exchange}), InternalError);
  }
}

TEST_F(PreparedTest, AReceiveBetweenWritesIsRefusedWhenTheRunIsCompiled) {
  const Output after =
      root_.with_control_dependencies({add_.op()})
          .add("_Recv", "received", {}, {{"peer", peer_}, {"bundle", int64_t{3}}, {"slot", int64_t{2}}, {"T", kFloat}})
          .output();
  const Output second = ops::assign_add(root_, v_, after);
  EXPECT_THAT([&] { plan({second}, {x_}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("received (_Recv) may block")));
}

TEST_F(PreparedTest, ARestoreIsAChangeThoughTheVariableHasAValue) {
  const testing::TemporaryDirectory directory;
  const std::string prefix = directory.file("model");
  BundleWriter writer(FileSystem::real(), prefix);
  writer.add("v", Tensor::scalar(5.f));
  writer.finish();
  const Output value =
      root_
          .add("RestoreV2", "restore",
               {ops::constant(root_, Tensor::scalar(prefix)), ops::constant(root_, Tensor::of<std::string>({"v"})),
                ops::constant(root_, Tensor::of<std::string>({""}))},
               {{"dtypes", std::vector<DType>{kFloat}}})
          .output();
  const std::shared_ptr<Plan> restore = plan({ops::assign(root_, v_, value)});
  const uint64_t before = task_->changes().generation();
  std::vector<Tensor> results;
  Prepared prepared = Plan::prepare(restore, {}, {});
  EXPECT_EQ(task_->changes().generation(), before) << "nothing is restored yet";
  prepared.commit(&results);
  EXPECT_EQ(task_->changes().generation(), before + 1);
  EXPECT_EQ(v(), 5);
}

TEST_F(PreparedTest, AFirstValueIsAChangeAndAStepIsNone) {
  const uint64_t before = task_->changes().generation();
  std::vector<Tensor> results;
  prepare_add(2).commit(&results);
  EXPECT_EQ(task_->changes().generation(), before);
  const Variable w = ops::variable(root_, "w", Tensor::scalar(1.f));
  DirectSession other(graph_, {}, task_);
  other.run(w.initializer());
  EXPECT_EQ(task_->changes().generation(), before + 1) << "its first value";
  other.run(w.initializer());
  EXPECT_EQ(task_->changes().generation(), before + 1) << "not its second";
}

// Commits of prepared steps beside resets and other steps: each step is whole, or an AbortedError.
TEST_F(PreparedTest, CommitsRaceWithResets) {
  std::atomic<int> committed{0}, aborted{0};
  std::atomic<bool> stop{false};
  const auto add_often = [&] {
    while (!stop) {
      try {
        const auto session = std::make_shared<SessionState>(task_);
        session->variable(v_.ref().op())->assign(Value(Tensor::scalar(0.f)));
        Session::Request request{.feeds = {x_}, .fetches = {Fetch(add_).resolve(graph_)}};
        const auto own = std::make_shared<Plan>(PlanBuilder(request, *session).build(), session);
        const Tensor one = Tensor::scalar(1.f);
        const Tensor* const feeds[] = {&one};
        std::vector<Tensor> results;
        for (int i = 0; i < 20; ++i) Plan::prepare(own, feeds, {}).commit(&results);
        ++committed;
      } catch (const AbortedError&) {
        ++aborted;
      } catch (const FailedPreconditionError&) {  // assigned before a reset that came before the plan was built
        ++aborted;
      }
    }
  };
  std::thread one(add_often), other(add_often);
  const Seconds end = Clock::real().now() + Seconds{60};
  for (int round = 0; round < 40; ++round) {
    SessionState witness(task_);
    const int seen = committed;
    while (committed == seen && Clock::real().now() < end) std::this_thread::yield();
    task_->reset({});
    EXPECT_THROW(witness.cancellation().check(), AbortedError);
  }
  stop = true;
  one.join();
  other.join();
  EXPECT_GE(committed, 40);
}

}  // namespace
}  // namespace longhaul
