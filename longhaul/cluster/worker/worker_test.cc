#include "longhaul/cluster/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/cluster/worker/worker_fixture.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Outcome = ScriptedMaster::Outcome;

// A master with a session on two tasks whose variables are initialised.
class WorkerTest : public ::testing::Test {
 protected:
  explicit WorkerTest(WorkerOptions options = {}) : tasks_(std::move(options)) {
    EXPECT_TRUE(master_->open());
    init_ = *master_->add(model_.divide({model_.a.initializer(), model_.b.initializer()}));
    step_ = *master_->add(model_.divide({model_.next_a, model_.next_b}));
    EXPECT_EQ(master_->step(init_), Outcome::kCommitted);
  }

  // Runs a step's parts until both are prepared.
  int64_t prepare() {
    const int64_t step = master_->new_step();
    EXPECT_TRUE(ScriptedMaster::all_good(master_->run(step_, step, 1)));
    return step;
  }
  CallReply commit(const std::string& task, int64_t step, const std::string& snapshot = {}) {
    proto::CommitRequest request;
    request.set_step(step);
    request.set_snapshot(snapshot);
    return master_->call(task, methods::kCommit, request);
  }
  proto::FreezeRequest freeze_request(const std::string& snapshot, double lease_secs = 10, double wait_secs = 0) {
    proto::FreezeRequest request;
    request.set_session(master_->session());
    request.set_snapshot(snapshot);
    request.set_lease_secs(lease_secs);
    request.set_wait_secs(wait_secs);
    return request;
  }
  CallReply freeze(const std::string& task, const std::string& snapshot = "s", double lease_secs = 10) {
    return master_->call(task, methods::kFreeze, freeze_request(snapshot, lease_secs));
  }
  static std::vector<int64_t> prepared_in(const CallReply& reply) {
    const auto freeze = header_of<proto::FreezeReply>(reply.message, "Freeze");
    return {freeze.prepared().begin(), freeze.prepared().end()};
  }
  static std::vector<int64_t> committed_in(const CallReply& reply) {
    const auto freeze = header_of<proto::FreezeReply>(reply.message, "Freeze");
    return {freeze.committed().begin(), freeze.committed().end()};
  }
  proto::StepState asked(const std::string& task, int64_t step) {
    proto::AskRequest request;
    request.set_step(step);
    const CallReply reply = master_->call(task, methods::kAsk, request);
    EXPECT_EQ(reply.error, nullptr) << text(reply);
    return header_of<proto::AskReply>(reply.message, "Ask").state();
  }
  CallReply look(const std::string& task, int64_t step) {
    proto::LookAtStepRequest request;
    request.set_step(step);
    return master_->call(task, methods::kLookAtStep, request);
  }
  proto::LookAtStepReply looked(const std::string& task, int64_t step) {
    const CallReply reply = look(task, step);
    EXPECT_EQ(reply.error, nullptr) << text(reply);
    return header_of<proto::LookAtStepReply>(reply.message, "LookAtStep");
  }
  void pass(double secs) {
    tasks_.passes([] { return false; }, secs);
  }
  static std::string text(const CallReply& reply) { return message_of(reply.error); }
  std::pair<float, float> values() { return {tasks_.ps()->value("a"), tasks_.ps1()->value("b")}; }
  void expect_nothing_left() {
    master_->close();
    EXPECT_TRUE(tasks_.passes([&] { return !tasks_.is_anything_left(); }, 100));
  }

  TwoTaskModel model_;
  TwoTasks tasks_;
  std::unique_ptr<ScriptedMaster> master_ = tasks_.new_master();
  ScriptedMaster::Parts init_, step_;
};

TEST_F(WorkerTest, AStepOnTwoTasksIsMadeOnBoth) {
  ASSERT_EQ(step_.size(), 2u);
  EXPECT_TRUE(ScriptedMaster::is_joint(step_));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(master_->step(step_), Outcome::kCommitted);
  EXPECT_EQ(values(), std::pair(3.f, 6.f));
  expect_nothing_left();
}

TEST_F(WorkerTest, TheFetchedValuesComeWithTheCommit) {  // unlike WK-6
  const int64_t step = prepare();
  EXPECT_EQ(values(), std::pair(0.f, 0.f));
  EXPECT_EQ(asked(kPs, step), proto::STEP_PREPARED);
  const std::vector<CallReply> replies = master_->each(step_, step, methods::kCommit);
  ASSERT_TRUE(ScriptedMaster::all_good(replies));
  ASSERT_EQ(replies[0].message.tensors.size(), 1u);
  EXPECT_EQ(replies[0].message.tensors[0].item<float>(), 1);
  EXPECT_EQ(asked(kPs, step), proto::STEP_COMMITTED);
  // Repeated, it is the same call.
  EXPECT_EQ(commit(kPs, step).message.tensors.at(0).item<float>(), 1);
  EXPECT_TRUE(ScriptedMaster::all_good(master_->run(step_, step, 1)));
  EXPECT_EQ(values(), std::pair(1.f, 1.f));
  master_->each(step_, step, methods::kCleanup);
  EXPECT_THAT(commit(kPs, step).message.tensors, IsEmpty());
  EXPECT_THAT(text(master_->run(step_, step, 1).at(0)), HasSubstr("its results are no longer kept"));
  EXPECT_EQ(values(), std::pair(1.f, 1.f));
  expect_nothing_left();
}

TEST_F(WorkerTest, ARunWithoutASecondWriterIsMadeAtOnce) {
  const auto only_b = *master_->add(model_.divide({model_.next_b}));
  EXPECT_FALSE(ScriptedMaster::is_joint(only_b));
  EXPECT_EQ(only_b.size(), 2u);
  EXPECT_EQ(master_->step(only_b, 4), Outcome::kCommitted);
  EXPECT_EQ(values(), std::pair(0.f, 4.f));
  expect_nothing_left();
}

TEST_F(WorkerTest, AnAbortedStepNeverWas) {
  const int64_t step = prepare();
  master_->each(step_, step, methods::kAbort);
  EXPECT_EQ(asked(kPs, step), proto::STEP_ABORTED);
  const CallReply late = commit(kPs, step);
  EXPECT_EQ(code_of(late.error), Code::kAborted);
  EXPECT_THAT(text(late), HasSubstr("was aborted on task " + kPs));
  EXPECT_EQ(values(), std::pair(0.f, 0.f));
  expect_nothing_left();
}

TEST_F(WorkerTest, AnAbortMayComeBeforeItsStep) {
  const int64_t step = master_->new_step();
  master_->each(step_, step, methods::kAbort);
  for (const CallReply& reply : master_->run(step_, step, 1)) {
    EXPECT_EQ(code_of(reply.error), Code::kAborted);
    EXPECT_THAT(text(reply), HasSubstr("aborted before its part began"));
  }
  expect_nothing_left();
}

TEST_F(WorkerTest, ACommitOfAStepThatNobodyKnowsSaysSo) {
  const CallReply reply = commit(kPs1, 7);
  EXPECT_EQ(code_of(reply.error), Code::kAborted);
  EXPECT_THAT(text(reply), HasSubstr("has never heard of step 7"));
  EXPECT_EQ(asked(kPs1, 7), proto::STEP_UNKNOWN);
}

TEST_F(WorkerTest, WhatATaskDoesNotKnowIsNamedInTensorFlowsWords) {  // WK-3, WK-5
  CallRequest request = master_->run_request(step_, step_[0], master_->new_step(), 1);
  proto::RunPartRequest run = header_of<proto::RunPartRequest>(request.message, "");
  run.set_session("feed");
  EXPECT_THAT(
      text(master_->call(step_[0].task, methods::kRunPart, run)),
      HasSubstr("Session handle is not found: feed. Possibly this worker (\"" + step_[0].task + "\") just restarted."));
  run.set_session(master_->session());
  run.set_graph_handle("beef");
  EXPECT_THAT(text(master_->call(step_[0].task, methods::kRunPart, run)), HasSubstr("Graph handle is not found: beef"));
}

TEST_F(WorkerTest, StepsThatNoMasterCountsAreNotRemembered) {
  for (const int64_t step : {int64_t{0}, int64_t{-7}}) {
    proto::AbortRequest abort;
    abort.set_step(step);
    EXPECT_THAT(text(master_->call(kPs, methods::kAbort, abort)), HasSubstr("steps are above 0"));
    proto::AskRequest ask;
    ask.set_step(step);
    EXPECT_THAT(text(master_->call(kPs, methods::kAsk, ask)), HasSubstr("steps are above 0"));
  }
}

TEST_F(WorkerTest, AnIdOrAPathWithoutEndIsRefusedAndNotRepeated) {
  proto::WatchRequest watch;
  watch.set_session(std::string(100000, 'x'));
  const std::string refusal = text(master_->call(kPs, methods::kWatch, watch));
  EXPECT_THAT(refusal, HasSubstr("the id of a session has 100000 bytes"));
  EXPECT_LT(refusal.size(), 2000);
  proto::LookAtFileRequest look;
  look.set_session(master_->session());
  look.set_path("/" + std::string(100000, 'x'));
  const CallReply reply = master_->call(kPs, methods::kLookAtFile, look);
  ASSERT_EQ(reply.error, nullptr) << text(reply);
  EXPECT_EQ(header_of<proto::LookAtFileReply>(reply.message, "").why(), "a path of 100001 bytes");
  proto::DeregisterGraphRequest unknown;
  unknown.set_session(std::string(100000, 'y'));
  EXPECT_LT(text(master_->call(kPs, methods::kDeregisterGraph, unknown)).size(), 2000);
}

TEST_F(WorkerTest, APartIsRegisteredOnceHoweverOftenItIsAsked) {
  proto::RegisterGraphRequest request;
  request.set_session(master_->session());
  request.set_graph_handle(step_[0].handle);  // without a graph: the first one stays
  const CallReply reply = master_->call(step_[0].task, methods::kRegisterGraph, request);
  ASSERT_EQ(reply.error, nullptr);
  EXPECT_TRUE(header_of<proto::RegisterGraphReply>(reply.message, "").changes_state());
  EXPECT_EQ(master_->step(step_), Outcome::kCommitted);
}

TEST_F(WorkerTest, AGraphFromOutsideIsChecked) {
  proto::RegisterGraphRequest request;
  request.set_session(master_->session());
  request.set_graph_handle("new");
  request.mutable_graph()->add_node()->set_op("Nonsense");
  EXPECT_THAT(text(master_->call(kPs, methods::kRegisterGraph, request)), HasSubstr("Nonsense"));
}

TEST_F(WorkerTest, ATaskTellsItsDevicesAndWhichProcessItIs) {
  const CallReply reply = master_->call(kPs1, methods::kGetStatus, proto::GetStatusRequest());
  const auto status = header_of<proto::GetStatusReply>(reply.message, "GetStatus");
  ASSERT_EQ(status.devices_size(), 1);
  EXPECT_EQ(status.devices(0).name(), kPs1 + "/device:CPU:0");
  EXPECT_EQ(status.devices(0).incarnation(), tasks_.ps1()->transport->incarnation());
}

TEST_F(WorkerTest, AnErrorComesWholeAndWhatFollowsFromItSaysSo) {
  TwoTaskModel fresh;
  const Variable c = ops::variable(fresh.on0, "c", Tensor::scalar(0.f));
  const auto parts =
      *master_->add(fresh.divide({ops::assign_add(fresh.on1, fresh.b, ops::add(fresh.on1, c, fresh.x))}));
  const int64_t step = master_->new_step();
  const auto on0 = std::find_if(parts.begin(), parts.end(), [](const auto& part) { return part.task == kPs; });
  const auto on1 = std::find_if(parts.begin(), parts.end(), [](const auto& part) { return part.task == kPs1; });
  ASSERT_NE(on0, parts.end());
  const CallReply failed = master_->call_all({master_->run_request(parts, *on0, step, 1)}).at(0);
  EXPECT_EQ(code_of(failed.error), Code::kFailedPrecondition);
  EXPECT_FALSE(is_consequence(failed.error));
  EXPECT_THAT(text(failed), HasSubstr("From " + kPs));
  EXPECT_THAT(text(failed), HasSubstr("Attempting to use uninitialized value c"));
  proto::AbortRequest abort;
  abort.set_step(step);
  *abort.mutable_error() = to_error_body(failed.error);
  master_->call(kPs1, methods::kAbort, abort);
  // The other part comes late, or was waiting: either way it is told.
  const CallReply follows = master_->call_all({master_->run_request(parts, *on1, step, 1)}).at(0);
  EXPECT_EQ(code_of(follows.error), Code::kAborted);
  expect_nothing_left();
}

TEST_F(WorkerTest, APartThatWaitsEndsWithTheAbortsCause) {  // unlike WK-7
  const auto on1 = std::find_if(step_.begin(), step_.end(), [](const auto& part) { return part.task == kPs1; });
  const int64_t step = master_->new_step();
  LateReply reply;
  master_->transport().start(master_->run_request(step_, *on1, step, 1), reply.done());
  ASSERT_TRUE(tasks_.passes([&] { return tasks_.ps1()->worker->counts().jobs == 1; }, 10));
  proto::AbortRequest abort;
  abort.set_step(step);
  *abort.mutable_error() = to_error_body(std::make_exception_ptr(DataLossError("the file x is torn")));
  EXPECT_EQ(master_->call(kPs1, methods::kAbort, abort).error, nullptr);
  ASSERT_TRUE(tasks_.passes([&] { return tasks_.ps1()->worker->counts().jobs == 0 && reply.get().has_value(); }, 10));
  EXPECT_TRUE(is_consequence(reply.get()->error));
  EXPECT_EQ(code_of(reply.get()->error), Code::kDataLoss);
  EXPECT_THAT(text(*reply.get()), HasSubstr("the file x is torn"));
  expect_nothing_left();
}

TEST_F(WorkerTest, AStepsDeadlineEndsItsWaits) {
  const auto on1 = std::find_if(step_.begin(), step_.end(), [](const auto& part) { return part.task == kPs1; });
  CallRequest request = master_->run_request(step_, *on1, master_->new_step(), 1);
  request.time_left = Seconds{5};
  const Seconds began = tasks_.clock().now();
  EXPECT_EQ(code_of(master_->call_all({request}).at(0).error), Code::kDeadlineExceeded);
  EXPECT_TRUE(tasks_.passes([&] { return tasks_.ps1()->worker->counts().jobs == 0; }, 10));
  EXPECT_LE((tasks_.clock().now() - began).count(), 10);
  expect_nothing_left();
}

// ---- Where a step is ----

TEST_F(WorkerTest, APartThatWaitsForAValueSaysForWhichAndWhose) {
  const auto on1 = std::find_if(step_.begin(), step_.end(), [](const auto& part) { return part.task == kPs1; });
  const int64_t step = master_->new_step();
  LateReply reply;
  master_->transport().start(master_->run_request(step_, *on1, step, 1), reply.done());
  pass(1);
  looked(kPs1, step);
  pass(3);
  const proto::LookAtStepReply place = looked(kPs1, step);
  EXPECT_EQ(place.state(), proto::STEP_RUNNING);
  EXPECT_EQ(place.place(), proto::PLACE_RUNS);
  EXPECT_EQ(place.type(), "_Recv");
  EXPECT_THAT(place.operation(), HasSubstr("_recv"));
  EXPECT_EQ(place.device(), "/device:CPU:0");
  EXPECT_EQ(place.peer(), kPs);
  EXPECT_GE(place.secs(), 3.9);
  EXPECT_GE(place.operation_secs(), 2.9);
  EXPECT_LT(place.operation_secs(), place.secs());
  EXPECT_EQ(looked(kPs, step).state(), proto::STEP_UNKNOWN) << "its part has not come";
  master_->each(step_, step, methods::kAbort);
  expect_nothing_left();
}

TEST_F(WorkerTest, APreparedPartWaitsForItsMasterAndOneThatIsOverIsNowhere) {
  const int64_t step = prepare();
  pass(1);
  EXPECT_EQ(looked(kPs, step).place(), proto::PLACE_VERDICT);
  EXPECT_EQ(looked(kPs, step).state(), proto::STEP_PREPARED);
  EXPECT_EQ(looked(kPs, step).operation(), "");
  master_->each(step_, step, methods::kCommit);
  EXPECT_EQ(looked(kPs, step).state(), proto::STEP_COMMITTED);
  EXPECT_TRUE(looked(kPs, step).is_over());
  master_->each(step_, step, methods::kCleanup);
  EXPECT_EQ(looked(kPs, step).state(), proto::STEP_COMMITTED);
  EXPECT_TRUE(looked(kPs, step).is_over());
  expect_nothing_left();
}

TEST_F(WorkerTest, ACommittedPartSaysThatItWaitsAtTheGate) {
  const auto only_b = *master_->add(model_.divide({model_.next_b}));
  ASSERT_EQ(freeze(kPs1, "s", 5).error, nullptr);
  const int64_t step = master_->new_step();
  std::vector<LateReply> replies(only_b.size());
  for (size_t i = 0; i < only_b.size(); ++i)
    master_->transport().start(master_->run_request(only_b, only_b[i], step, 1), replies[i].done());
  pass(1);
  EXPECT_EQ(looked(kPs1, step).place(), proto::PLACE_GATE);
  EXPECT_TRUE(tasks_.passes([&] { return replies[0].get().has_value() && replies[1].get().has_value(); }, 10));
  master_->each(only_b, step, methods::kCleanup);
  expect_nothing_left();
}

TEST_F(WorkerTest, AStepIsSeenByItsMasterAlone) {
  const int64_t step = prepare();
  const auto other = tasks_.network().start("/job:worker/replica:0/task:1");
  proto::LookAtStepRequest request;
  request.set_step(step);
  LateReply reply;
  other->start({.task = kPs, .method = methods::kLookAtStep, .message = to_message(request)}, reply.done());
  ASSERT_TRUE(tasks_.passes([&] { return reply.get().has_value(); }, 10));
  EXPECT_EQ(code_of(reply.get()->error), Code::kAborted);
  EXPECT_THAT(text(*reply.get()), HasSubstr("belongs to the master on task " + kWorker));
  master_->each(step_, step, methods::kAbort);
  expect_nothing_left();
}

// ---- The master dies ----

TEST_F(WorkerTest, AMasterThatDiesBeforeItCommitsLeavesNothing) {  // unlike WK-8
  prepare();
  tasks_.network().kill(kWorker);
  EXPECT_TRUE(tasks_.passes([&] { return !tasks_.is_anything_left(); }, 10));
  EXPECT_EQ(values(), std::pair(0.f, 0.f));
}

TEST_F(WorkerTest, AMasterThatDiesBetweenTheCommitsHasCommitted) {
  const int64_t step = prepare();
  ASSERT_EQ(commit(kPs1, step).error, nullptr);
  tasks_.network().kill(kWorker);
  EXPECT_TRUE(tasks_.passes([&] { return !tasks_.is_anything_left(); }, 10));
  EXPECT_EQ(values(), std::pair(1.f, 1.f));
}

TEST_F(WorkerTest, AParticipantThatDiedWithTheMasterCountsForNothing) {
  prepare();
  tasks_.network().kill(kPs1);
  tasks_.network().kill(kWorker);
  tasks_.clock().at(tasks_.clock().now() + Seconds{3}, [&] { tasks_.restart(kPs1); });
  EXPECT_TRUE(tasks_.passes([&] { return !tasks_.is_anything_left(); }, 30));
  EXPECT_EQ(tasks_.ps()->value("a"), 0);
  EXPECT_NO_THROW(tasks_.ps()->resources->variables().check_consistent());
}

TEST_F(WorkerTest, AParticipantThatIsNotToBeReachedIsWaitedForAndThenNothingIsSaved) {
  const int64_t step = prepare();
  ASSERT_EQ(commit(kPs1, step).error, nullptr);
  tasks_.network().cut(kPs, kPs1);
  const Seconds began = tasks_.clock().now();
  tasks_.network().kill(kWorker);
  EXPECT_TRUE(tasks_.passes([&] { return !tasks_.is_anything_left(); }, 100));
  EXPECT_GE((tasks_.clock().now() - began).count(), 60);
  EXPECT_EQ(values(), std::pair(0.f, 1.f)) << "the cut one does not know";
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { tasks_.ps()->resources->variables().check_consistent(); }),
              HasSubstr("has died between the commits"));
}

TEST_F(WorkerTest, AParticipantThatIsReachedInTimeIsAsked) {
  const int64_t step = prepare();
  ASSERT_EQ(commit(kPs1, step).error, nullptr);
  tasks_.network().cut(kPs, kPs1);
  tasks_.clock().at(tasks_.clock().now() + Seconds{20}, [&] { tasks_.network().mend(kPs, kPs1); });
  tasks_.network().kill(kWorker);
  EXPECT_TRUE(tasks_.passes([&] { return !tasks_.is_anything_left(); }, 100));
  EXPECT_EQ(values(), std::pair(1.f, 1.f));
}

TEST_F(WorkerTest, AMasterThatOnlyOneTaskHasLostCommitsNothingAlone) {
  const int64_t step = prepare();
  proto::AskRequest lost;  // as the other participant asks
  lost.set_step(step);
  lost.set_resolve(true);
  const proto::StepState state =
      header_of<proto::AskReply>(master_->call(kPs, methods::kAsk, lost).message, "Ask").state();
  // Aborted, if the other task has told it meanwhile that it has only prepared the step.
  EXPECT_THAT(state, AnyOf(proto::STEP_PREPARED, proto::STEP_ABORTED));
  const std::vector<CallReply> replies = master_->each(step_, step, methods::kCommit);
  EXPECT_EQ(replies[0].error == nullptr, replies[1].error == nullptr) << "both or none";
  const auto [a, b] = values();
  EXPECT_EQ(a, b);
  expect_nothing_left();
}

TEST_F(WorkerTest, ASessionEndsWithItsWatchAndTheVariablesLiveOn) {
  EXPECT_EQ(master_->step(step_), Outcome::kCommitted);
  expect_nothing_left();
  const auto next = tasks_.new_master("fedcba0987654321");
  ASSERT_TRUE(next->open());
  const auto step = *next->add(model_.divide({model_.next_a, model_.next_b}));
  EXPECT_EQ(next->step(step), Outcome::kCommitted);
  EXPECT_EQ(values(), std::pair(2.f, 3.f));
}

// ---- Snapshots ----

TEST_F(WorkerTest, WhoWaitsForTheEndOfTheLastSessionIsToldAtOnce) {
  Worker& worker = *tasks_.ps()->worker;
  const Seconds began = tasks_.clock().now();
  EXPECT_FALSE(worker.wait_until_unused(began + Seconds{1}));
  EXPECT_NEAR((tasks_.clock().now() - began).count(), 1, 0.01);
  tasks_.clock().at(began + Seconds{3.2}, [&] { master_->close(); });
  EXPECT_TRUE(worker.wait_until_unused(began + Seconds{60}));
  EXPECT_NEAR((tasks_.clock().now() - began).count(), 3.2, 0.1);
  EXPECT_TRUE(worker.wait_until_unused(began));
}

TEST_F(WorkerTest, AStopEndsTheWaitForTheLastSession) {
  Worker& worker = *tasks_.ps()->worker;
  const Seconds began = tasks_.clock().now();
  tasks_.clock().at(began + Seconds{3.2}, [&] { worker.request_stop("the test ends"); });
  EXPECT_TRUE(worker.wait_until_unused(began + Seconds{60}));
  EXPECT_NEAR((tasks_.clock().now() - began).count(), 3.2, 0.1);
}

TEST_F(WorkerTest, AFrozenTaskMakesNoStepAndTellsWhichArePrepared) {
  const int64_t step = prepare();
  EXPECT_THAT(prepared_in(freeze(kPs)), ElementsAre(step));
  LateReply committed;
  proto::CommitRequest request;
  request.set_step(step);
  master_->transport().start(master_->request(kPs, methods::kCommit, to_message(request)), committed.done());
  ASSERT_EQ(commit(kPs1, step).error, nullptr);
  EXPECT_THAT(committed_in(freeze(kPs1)), ElementsAre(step));
  EXPECT_EQ(values(), std::pair(0.f, 1.f));
  // What the other task has made is made here, too.
  EXPECT_EQ(commit(kPs, step, "s").error, nullptr);
  EXPECT_EQ(values(), std::pair(1.f, 1.f));
  EXPECT_TRUE(tasks_.passes([&] { return committed.get().has_value(); }, 10));
  EXPECT_EQ(committed.get()->error, nullptr);
  EXPECT_TRUE(tasks_.ps()->resources->gate().is_shut());
  expect_nothing_left();
}

// The first snapshot may not have the step on another task.
TEST_F(WorkerTest, AStepThatAnotherSnapshotKeepsOutIsNotLetInByTheNext) {
  const int64_t step = prepare();
  ASSERT_EQ(freeze(kPs, "one").error, nullptr);
  LateReply committed;
  proto::CommitRequest request;
  request.set_step(step);
  master_->transport().start(master_->request(kPs, methods::kCommit, to_message(request)), committed.done());
  ASSERT_TRUE(tasks_.passes([&] { return asked(kPs, step) == proto::STEP_COMMITTED; }, 10));
  const CallReply refused = freeze(kPs, "two");
  EXPECT_TRUE(header_of<proto::FreezeReply>(refused.message, "Freeze").is_anothers());
  LateReply frozen;
  master_->transport().start(master_->request(kPs, methods::kFreeze, to_message(freeze_request("three", 10, 10))),
                             frozen.done());
  EXPECT_FALSE(tasks_.passes([&] { return frozen.get().has_value(); }, 1));
  EXPECT_EQ(tasks_.ps()->value("a"), 0);
  proto::OpenRequest open;
  open.set_session(master_->session());
  open.set_snapshot("one");
  ASSERT_EQ(master_->call(kPs, methods::kOpen, open).error, nullptr);
  ASSERT_TRUE(tasks_.passes([&] { return frozen.get().has_value(); }, 10));
  EXPECT_THAT(committed_in(*frozen.get()), ElementsAre(step)) << "another task may have made it";
  EXPECT_EQ(tasks_.ps()->value("a"), 1);
  EXPECT_TRUE(tasks_.passes([&] { return committed.get().has_value(); }, 10));
  EXPECT_TRUE(tasks_.ps()->resources->gate().is_shut());
}

TEST_F(WorkerTest, AStepOfADeadMasterIsToldToSnapshotsWhileAnotherTaskIsInDoubt) {
  const int64_t step = prepare();
  ASSERT_EQ(commit(kPs1, step).error, nullptr);
  tasks_.network().cut(kPs, kPs1);
  tasks_.network().kill(kWorker);
  EXPECT_TRUE(tasks_.passes([&] { return tasks_.ps1()->worker->counts().sessions == 0; }, 5));
  master_ = tasks_.new_master("fedcba0987654321");
  ASSERT_TRUE(master_->open());
  EXPECT_THAT(prepared_in(freeze(kPs)), ElementsAre(step));
  EXPECT_THAT(committed_in(freeze(kPs1)), ElementsAre(step));
  EXPECT_EQ(commit(kPs, step, "s").error, nullptr);
  EXPECT_EQ(values(), std::pair(1.f, 1.f));
}

TEST_F(WorkerTest, ASnapshotIsTakenAndKeptForItsLease) {
  const auto reads = *master_->add(model_.divide({model_.a, model_.b}, /*is_snapshot=*/true), /*is_snapshot=*/true);
  EXPECT_EQ(master_->step(step_), Outcome::kCommitted);
  for (const ScriptedMaster::Part& part : reads) {
    ASSERT_EQ(freeze(part.task).error, nullptr);
    proto::TakeRequest take;
    take.set_session(master_->session());
    take.set_snapshot("s");
    take.set_graph_handle(part.handle);
    EXPECT_EQ(master_->call(part.task, methods::kTake, take).error, nullptr);
    EXPECT_EQ(master_->call(part.task, methods::kTake, take).error, nullptr) << "again: the same";
    proto::OpenRequest open;
    open.set_session(master_->session());
    open.set_snapshot("s");
    EXPECT_EQ(master_->call(part.task, methods::kOpen, open).error, nullptr);
    EXPECT_EQ(code_of(master_->call(part.task, methods::kTake, take).error), Code::kAborted);
  }
  EXPECT_EQ(master_->step(step_), Outcome::kCommitted);
  expect_nothing_left();
}

TEST_F(WorkerTest, AGateThatItsMasterForgetsOpensByItself) {
  ASSERT_EQ(freeze(kPs, "s", 5).error, nullptr);
  EXPECT_EQ(master_->step(step_), Outcome::kCommitted);
  ASSERT_EQ(freeze(kPs, "t", 5).error, nullptr);
  tasks_.network().kill(kWorker);
  EXPECT_TRUE(tasks_.passes([&] { return !tasks_.is_anything_left(); }, 4)) << "before the lease ends";
}

TEST_F(WorkerTest, AFreezeThatComesLateLeavesTheGateOpen) {
  ASSERT_EQ(freeze(kPs).error, nullptr);
  proto::OpenRequest open;
  open.set_session(master_->session());
  open.set_snapshot("s");
  ASSERT_EQ(master_->call(kPs, methods::kOpen, open).error, nullptr);
  EXPECT_EQ(code_of(freeze(kPs).error), Code::kAborted);
  EXPECT_FALSE(tasks_.ps()->resources->gate().is_shut());
}

TEST_F(WorkerTest, ASnapshotRunOfSeveralTasksReadsOneMoment) {
  const auto reads = *master_->add(model_.divide({model_.a, model_.b}, /*is_snapshot=*/true), /*is_snapshot=*/true);
  const int64_t step = prepare();
  ASSERT_EQ(commit(kPs1, step).error, nullptr);
  for (const std::string& task : {kPs, kPs1}) ASSERT_EQ(freeze(task).error, nullptr);
  ASSERT_EQ(commit(kPs, step, "s").error, nullptr);
  const std::vector<CallReply> replies = master_->run(reads, master_->new_step(), 0, "s");
  ASSERT_TRUE(ScriptedMaster::all_good(replies));
  EXPECT_EQ(replies[0].message.tensors.at(0).item<float>(), 1);
  EXPECT_EQ(replies[1].message.tensors.at(0).item<float>(), 1);
  expect_nothing_left();
}

// ---- The rest ----

TEST_F(WorkerTest, WhoWaitsForAChangeIsToldOfAReset) {
  proto::WaitForChangeRequest request;
  request.set_generation(tasks_.ps()->resources->changes().generation());
  LateReply changed;
  master_->transport().start(master_->request(kPs, methods::kWaitForChange, to_message(request)), changed.done());
  ASSERT_TRUE(tasks_.passes([&] { return tasks_.ps()->worker->counts().waits_for_changes == 1; }, 10));
  EXPECT_EQ(master_->call(kPs, methods::kReset, proto::ResetRequest()).error, nullptr);
  ASSERT_TRUE(tasks_.passes([&] { return changed.get().has_value(); }, 10));
  EXPECT_GT(header_of<proto::WaitForChangeReply>(changed.get()->message, "").generation(), request.generation());
  EXPECT_TRUE(tasks_.passes([&] { return master_->is_lost(); }, 10)) << "a reset ends the sessions";
  EXPECT_EQ(tasks_.ps()->value("a"), -1);
  expect_nothing_left();
}

TEST_F(WorkerTest, NobodyWaitsForChangesOnceAllCallersHaveGone) {
  proto::WaitForChangeRequest request;
  request.set_generation(tasks_.ps()->resources->changes().generation());
  const auto jobs = [&] { return tasks_.ps()->worker->counts().jobs; };
  for (int i = 0; i < 2; ++i) {
    const auto call = master_->transport().start(master_->request(kPs, methods::kWaitForChange, to_message(request)),
                                                 [](CallReply) {});
    ASSERT_TRUE(tasks_.passes([&] { return jobs() == 1; }, 10));
    call->cancel("the test no longer waits");
    EXPECT_TRUE(tasks_.passes([&] { return jobs() == 0; }, 10));
  }
  expect_nothing_left();
}

TEST_F(WorkerTest, AStopEndsEverything) {
  prepare();
  ASSERT_EQ(freeze(kPs1).error, nullptr);
  for (const auto& process : tasks_.all()) {
    EXPECT_TRUE(process->worker->stop("the test stops it", Seconds{5}));
    EXPECT_EQ(process->worker->counts().jobs, 0u);
    EXPECT_EQ(process->worker->counts().sessions, 0u);
  }
  EXPECT_TRUE(tasks_.passes([&] { return master_->is_lost(); }, 1));
  EXPECT_EQ(code_of(master_->run(step_, master_->new_step(), 1).at(0).error), Code::kUnavailable);
  EXPECT_EQ(values(), std::pair(0.f, 0.f));
}

class CrowdedWorkerTest : public WorkerTest {
 protected:
  CrowdedWorkerTest() : WorkerTest({.threads = {.most = 2}}) {}
};

TEST_F(CrowdedWorkerTest, MoreThanTheMostPartsAreRefusedByName) {  // unlike WK-12
  const auto on1 = std::find_if(step_.begin(), step_.end(), [](const auto& part) { return part.task == kPs1; });
  for (int i = 0; i < 2; ++i) {
    master_->transport().start(master_->run_request(step_, *on1, master_->new_step(), 1), [](CallReply) {});
  }
  ASSERT_TRUE(tasks_.passes([&] { return tasks_.ps1()->worker->counts().jobs == 2; }, 10));
  const CallReply reply = master_->call_all({master_->run_request(step_, *on1, master_->new_step(), 1)}).at(0);
  EXPECT_EQ(code_of(reply.error), Code::kResourceExhausted);
  EXPECT_THAT(text(reply), HasSubstr("task " + kPs1));
  expect_nothing_left();
}

}  // namespace
}  // namespace longhaul
