#include "longhaul/cluster/master/cluster_session.h"

#include "longhaul/cluster/master/cluster_session_fixture.h"
#include "longhaul/cluster/master/taken_snapshot.h"
#include "longhaul/cluster/tasks/session_tasks.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/proto/config.pb.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<int64_t> numbers(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.item<int64_t>());
  return values;
}

TEST_F(ClusterSessionTest, OnlyTasksThatARunNamesAreContacted) {  // SS-9, unlike MA-4
  start(kPs);
  start(kWorker);
  const auto session = this->session();
  EXPECT_TRUE(network_.sent().empty());
  session->run(add_v_);
  EXPECT_EQ(toy(kPs).counts["v"], 1);
  EXPECT_EQ(network_.calls(kWorker, kPs1), 0u);
  EXPECT_EQ(network_.calls(kWorker, kOtherWorker), 0u);
  const Seconds began = now();
  session->close();
  EXPECT_EQ(now(), began);
  expect_nothing_left();
}

TEST_F(ClusterSessionTest, AStepThatOneTaskWritesTakesOneCall) {  // unlike MA-7
  start_all();
  const auto session = this->session();
  session->run(add_v_);
  const size_t before = network_.calls(kWorker, kPs);
  for (int i = 0; i < 10; ++i) session->run(add_v_);
  EXPECT_EQ(network_.calls(kWorker, kPs), before + 10);
  EXPECT_EQ(toy(kPs).counts["v"], 11);
}

TEST_F(ClusterSessionTest, AStepThatTwoTasksWriteTakesTwoCallsToEach) {
  start_all();
  const auto session = this->session();
  session->run(train_);
  const size_t before = network_.sent().size();
  session->run(train_);
  EXPECT_EQ(network_.sent().size(), before + 8);  // RunPart and Commit to both, with replies
  EXPECT_EQ(toy(kPs).counts["v"], 2);
  EXPECT_EQ(toy(kPs1).counts["w"], 2);
  EXPECT_EQ(toy(kPs).committed, toy(kPs1).committed);
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterSessionTest, ARunIsRegisteredOnceAndTheGraphMayGrow) {  // unlike MA-6, unlike WK-4
  start_all();
  const auto session = this->session();
  for (int i = 0; i < 3; ++i) session->run(train_);
  EXPECT_EQ(toy(kPs).parts(), 1u);
  const Operation more = add_one(ps0_, "more", v_);
  session->run(more);
  EXPECT_EQ(toy(kPs).parts(), 2u);
  EXPECT_EQ(toy(kPs).counts["v"], 4);
  const Callable callable = session->make_callable(train_);
  callable.call(std::vector<Tensor>{});
  EXPECT_EQ(toy(kPs).parts(), 2u);
  EXPECT_EQ(toy(kPs).counts["v"], 5);
}

TEST_F(ClusterSessionTest, ARegistrationThatFailedIsTriedAgain) {
  start(kPs);
  start(kWorker);
  const auto session = this->session({.tasks = options().tasks, .max_wait = Seconds{1}});
  EXPECT_THROW(session->run(train_), UnavailableError);
  start(kPs1);
  session->run(train_);
  EXPECT_EQ(toy(kPs1).counts["w"], 1);
}

TEST_F(ClusterSessionTest, ResultsComeInTheOrderOfTheFetches) {  // unlike SS-11
  start_all();
  const auto session = this->session();
  session->run(add_v_);
  session->run(train_);
  EXPECT_THAT(numbers(session->run({read_w_, read_v_, read_w_})), ElementsAre(1, 2, 1));
  EXPECT_FALSE(session->run(train_).defined());
}

TEST_F(ClusterSessionTest, WhatIsFetchedAsItWasFedAsksNobody) {
  start(kWorker);
  const Output fed = root_.add("Placeholder", "fed", {}, {{"dtype", kString}, {"shape", Shape()}}).output();
  const auto session = this->session();
  EXPECT_EQ(session->run(fed, {{fed, Tensor::scalar("as it is")}}).item<std::string>(), "as it is");
}

TEST_F(ClusterSessionTest, ThePartsOfARunAreItsMetadata) {
  start_all();
  const auto session = this->session();
  proto::RunMetadata metadata;
  session->run(train_, {}, {.output_partition_graphs = true}, &metadata);
  EXPECT_EQ(metadata.partition_graphs_size(), 2);
}

TEST_F(ClusterSessionTest, AStepComputesWhatIsDueWithIt) {
  start_all();
  const auto session = this->session();
  std::vector<int64_t> seen;
  session->capabilities().step_fetching->request_step_fetch(
      {{read_w_, read_v_}, [&](std::vector<Tensor> values, const std::exception_ptr&) { seen = numbers(values); }});
  session->run(read_v_);  // which writes nothing
  EXPECT_TRUE(seen.empty());
  EXPECT_FALSE(session->run(train_).defined());
  EXPECT_THAT(seen, ElementsAre(0, 0));  // before the writes
  session->run(train_);
  EXPECT_THAT(seen, ElementsAre(0, 0));
  EXPECT_EQ(toy(kPs).counts["v"], 2);
}

TEST_F(ClusterSessionTest, TheStepThatARunHasFetchedIsKnownWhenTheSessionIsLost) {
  start_all();
  graph_.add_to_collection(collections::kGlobalStep, VariableInfo{.ref = v_, .read = read_v_});
  const auto session = this->session();
  const StepReading& reading = *session->capabilities().step_reading;
  session->run(train_);
  session->run(read_w_);
  EXPECT_FALSE(reading.newest_step().has_value()) << "it is another variable";
  session->run(read_v_);
  ASSERT_TRUE(reading.newest_step().has_value());
  EXPECT_EQ(reading.newest_step()->step, 1);
  session->run(train_);
  session->make_callable(read_v_).call(std::vector<Tensor>{});
  const Seconds read_at = now();
  network_.kill(kPs);
  pass(Seconds{2});
  EXPECT_THROW(session->run(read_v_), Error);
  EXPECT_EQ(reading.newest_step()->step, 2);
  EXPECT_GE(reading.newest_step()->ago, now() - read_at);
}

std::string trace_of(const std::string& device, const std::string& node) {
  proto::StepStats stats;
  stats.add_dev_stats()->set_device(device);
  stats.mutable_dev_stats(0)->add_node_stats()->set_node_name(node);
  return stats.SerializeAsString();
}

TEST_F(ClusterSessionTest, ATraceHasWhatEachTaskHasRecordedUnderItsName) {  // SS-18
  start_all();
  const auto session = this->session();
  toy(kPs).trace = trace_of(kPs + "/device:CPU:0", "add_v");
  toy(kPs1).trace = trace_of("/job:another/task:7/device:CPU:1", "add_w");
  proto::RunMetadata metadata;
  const RunOptions traced{.trace_level = TraceLevel::kFullTrace};
  EXPECT_EQ(session->run({read_v_, train_, read_w_}, {}, traced, &metadata).size(), 3u);
  std::map<std::string, std::string> nodes;
  for (const auto& device : metadata.step_stats().dev_stats())
    nodes[device.device()] = device.node_stats(0).node_name();
  EXPECT_EQ(nodes,
            (std::map<std::string, std::string>{{kPs + "/device:CPU:0", "add_v"}, {kPs1 + "/device:CPU:1", "add_w"}}));
  session->run(train_, {}, {}, &metadata);
  EXPECT_FALSE(metadata.has_step_stats());
}

TEST_F(ClusterSessionTest, ATraceThatIsMissingOrDamagedIsLeftOutWithAWarning) {
  start_all();
  const auto session = this->session();
  toy(kPs).trace = "\xff nothing that can be read";
  proto::RunMetadata metadata;
  session->run(train_, {}, {.trace_level = TraceLevel::kFullTrace}, &metadata);
  EXPECT_EQ(metadata.step_stats().dev_stats_size(), 0);
  EXPECT_EQ(toy(kPs).counts["v"], 1) << "the step was made";
  EXPECT_THAT(logged_, Contains(HasSubstr("what task " + kPs + " has recorded of a traced run is left out")));
  EXPECT_THAT(logged_, Contains(HasSubstr("task " + kPs1 + " has recorded nothing of a traced run")));
}

// ---- Errors ----

TEST_F(ClusterSessionTest, AnErrorOfOneTaskEndsTheStepOnAll) {  // SS-20, SS-21
  start_all();
  const auto session = this->session();
  toy(kPs).fails = std::make_exception_ptr(InvalidArgumentError("a bad value" + std::string(5000, '!')));
  toy(kPs1).hangs = true;
  EXPECT_EQ(error_of<InvalidArgumentError>([&] { session->run(train_); }),
            "From " + kPs + ":\na bad value" + std::string(5000, '!'));
  network_.clock().settle();
  EXPECT_EQ(toy(kPs1).unfinished_steps(), 0u);
  toy(kPs).fails = nullptr;
  toy(kPs1).hangs = false;
  session->run(train_);
  EXPECT_EQ(toy(kPs).counts["v"], 1);
  EXPECT_EQ(toy(kPs1).counts["w"], 1);
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterSessionTest, AConsequenceIsNotReportedIfItsCauseComes) {  // SS-21
  start_all();
  const auto session = this->session();
  session->run(train_);
  toy(kPs).fails = std::make_exception_ptr(ConsequenceError(Code::kCancelled, "the other part has failed"));
  toy(kPs1).fails = std::make_exception_ptr(OutOfRangeError("the input has ended"));
  // The parts, then the answer of ps 0, then this one.
  network_.plan({.kind = NetworkFault::Kind::kDelay, .message = network_.sent().size() + 4, .time = Seconds{0.1}});
  EXPECT_EQ(error_of<OutOfRangeError>([&] { session->run(train_); }), "From " + kPs1 + ":\nthe input has ended");
}

TEST_F(ClusterSessionTest, ATimeoutNamesTheTaskAndSaysThatNothingWasCommitted) {  // MA-9, unlike SS-14, unlike MA-8
  start_all();
  const auto session = this->session();
  session->run(train_);
  toy(kPs1).hangs = true;
  const Seconds began = now();
  EXPECT_THAT(error_of<DeadlineExceededError>([&] { session->run(train_, {}, {.timeout = Seconds{3}}); }),
              AllOf(HasSubstr("task " + kPs1), HasSubstr("has not answered RunPart for 3 s"),
                    HasSubstr("The step was not committed")));
  EXPECT_NEAR((now() - began).count(), 3, 0.01);
  EXPECT_EQ(toy(kPs).counts["v"], 1);
  toy(kPs).hangs = true;
  EXPECT_THAT(error_of<DeadlineExceededError>([&] { session->run(add_v_, {}, {.timeout = Seconds{3}}); }),
              HasSubstr("The step was not committed"));
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterSessionTest, AStepThatIsCommittedSomewhereIsCommittedEverywhere) {
  start_all();
  const auto session = this->session();
  session->run(train_);
  // The parts and their answers, then the commits.
  network_.plan({.kind = NetworkFault::Kind::kDelay, .message = network_.sent().size() + 6, .time = Seconds{2}});
  EXPECT_THAT(error_of<DeadlineExceededError>([&] { session->run(train_, {}, {.timeout = Seconds{1}}); }),
              AllOf(HasSubstr("has not answered Commit"), HasSubstr("The step was committed")));
  EXPECT_EQ(toy(kPs).counts["v"], 2);
  pass(Seconds{2});
  EXPECT_EQ(toy(kPs1).counts["w"], 2);
}

TEST_F(ClusterSessionTest, AnErrorAfterTheWritesSaysSo) {
  start_all();
  const auto session = this->session();
  toy(kPs1).fails_later = std::make_exception_ptr(OutOfRangeError("too far"));
  EXPECT_THAT(error_of<OutOfRangeError>([&] { session->run(train_); }),
              AllOf(StartsWith("From " + kPs1 + ":\ntoo far"), HasSubstr("The step was committed")));
  EXPECT_EQ(toy(kPs).counts["v"], 1);
}

// ---- Deaths ----

TEST_F(ClusterSessionTest, ALostTaskEndsTheSessionAtOnce) {  // WK-3, unlike WK-13
  start_all();
  const auto session = this->session();
  session->run(train_);
  network_.kill(kPs1);
  pass(Seconds{0.2});
  const size_t sent = network_.sent().size();
  const Seconds began = now();
  EXPECT_THAT(
      error_of<AbortedError>([&] { session->run(add_v_); }),
      AllOf(StartsWith("From " + kPs1 + ":\nSession handle is not found: " + session->handle()),
            HasSubstr("Possibly this worker (\"" + kPs1 + "\") just restarted."), HasSubstr("Make a new session")));
  EXPECT_EQ(network_.sent().size(), sent);
  session->close();
  EXPECT_EQ(now(), began);
  const auto next = this->session();
  next->run(add_v_);
  EXPECT_EQ(toy(kPs).counts["v"], 2);
  next->close();
  expect_nothing_left();
}

TEST_F(ClusterSessionTest, ARunUnderWayEndsWhenATaskDies) {
  start_all();
  const auto session = this->session();
  toy(kPs1).hangs = true;
  in(Seconds{1}, [&] { network_.kill(kPs1); });
  const Seconds began = now();
  EXPECT_THAT(error_of<AbortedError>([&] { session->run(train_); }),
              AllOf(HasSubstr(kPs1), HasSubstr("The step was not committed")));
  EXPECT_LE((now() - began).count(), 1.2);
  EXPECT_EQ(toy(kPs).counts["v"], 0);
  session->close();
  expect_nothing_left();
}

TEST_F(ClusterSessionTest, AnotherProcessOfATaskIsNoPartOfTheSession) {
  start_all();
  const auto session = this->session();
  session->run(train_);
  network_.kill(kPs1);
  network_.clock().settle();
  start(kPs1);
  EXPECT_THAT(error_of<AbortedError>([&] { session->run(train_); }), HasSubstr(kPs1));
  EXPECT_EQ(toy(kPs1).counts["w"], 0);
  EXPECT_EQ(toy(kPs).counts["v"], 1);
}

TEST_F(ClusterSessionTest, AShortCutLosesNothing) {
  start_all();
  const auto session = this->session();
  session->run(train_);
  network_.cut(kWorker, kPs1);
  network_.cut(kPs1, kWorker);
  in(Seconds{1}, [&] {
    network_.mend(kWorker, kPs1);
    network_.mend(kPs1, kWorker);
  });
  session->run(train_);
  EXPECT_EQ(toy(kPs1).counts["w"], 2);
  session->run(train_);
}

TEST_F(ClusterSessionTest, ATaskThatIsAwayIsWaitedForAndNamed) {  // unlike MA-2
  start(kPs);
  start(kWorker);
  in(Seconds{25}, [&] { start(kPs1); });
  const auto session = this->session();
  session->run(train_);
  EXPECT_EQ(toy(kPs1).counts["w"], 1);
  const std::string line = "CreateSession still waiting for response from worker: " + kPs1;
  EXPECT_EQ(std::count(logged_.begin(), logged_.end(), line), 2);
}

TEST_F(ClusterSessionTest, ATaskThatStaysAwayIsAnErrorThatNamesIt) {  // unlike MA-2
  start(kPs);
  start(kWorker);
  const auto session = this->session({.tasks = options().tasks, .max_wait = Seconds{30}});
  const Seconds began = now();
  EXPECT_THAT(error_of<UnavailableError>([&] { session->run(train_); }),
              AllOf(HasSubstr("task " + kPs1), HasSubstr("has not answered for 30 s")));
  EXPECT_NEAR((now() - began).count(), 30, 1);
  EXPECT_THROW(session->run(train_, {}, {.timeout = Seconds{5}}), DeadlineExceededError);
}

// ---- Close ----

TEST_F(ClusterSessionTest, AClosedSessionRunsNothing) {  // SG-4
  start_all();
  const auto session = this->session();
  session->run(train_);
  session->close();
  session->close();
  EXPECT_EQ(error_of<FailedPreconditionError>([&] { session->run(train_); }), "Attempted to use a closed Session.");
  expect_nothing_left();
}

TEST_F(ClusterSessionTest, ACloseEndsTheRunsUnderWay) {  // SS-5
  start_all();
  const auto session = this->session();
  toy(kPs).hangs = true;
  in(Seconds{1}, [&] { session->close(); });  // which cannot see the run's end, as both are on one thread
  EXPECT_THAT(error_of<CancelledError>([&] { session->run(train_); }), HasSubstr("Session::Close"));
  EXPECT_THAT(logged_, Contains(HasSubstr("has not ended in time")));
  expect_nothing_left();
}

TEST_F(ClusterSessionTest, ACloseWaitsForASilentTaskForTenSecondsAtMost) {  // unlike MA-12, unlike RC-15
  start_all();
  const auto session = this->session();
  session->run(train_);
  network_.cut(kWorker, kPs1);
  network_.cut(kPs1, kWorker);
  const Seconds began = now();
  session->close();
  EXPECT_LE((now() - began).count(), 10.1);
  network_.mend(kWorker, kPs1);
  network_.mend(kPs1, kWorker);
  expect_nothing_left();
}

// ---- Snapshots ----

TEST_F(ClusterSessionTest, ASnapshotOfSeveralTasksOpensTheirGates) {
  start_all();
  const auto session = this->session();
  session->run(train_);
  const auto snapshots = snapshots_of(*session);
  EXPECT_THAT(numbers(snapshots->take(*session, {read_v_, read_w_})), ElementsAre(1, 1));
  const size_t before = network_.sent().size();
  EXPECT_THAT(numbers(snapshots->take(*session, {read_v_, read_w_})), ElementsAre(1, 1));
  EXPECT_EQ(network_.sent().size(), before + 8);  // Freeze and RunPart
  EXPECT_EQ(toy(kPs).shut_doors(), 0u);
  EXPECT_EQ(toy(kPs1).shut_doors(), 0u);
}

TEST_F(ClusterSessionTest, ASnapshotCompletesAStepThatIsHalfCommitted) {
  start_all();
  const auto saving = session(), training = session(options(), kOtherWorker);
  training->run(train_);
  std::vector<int64_t> seen;
  in(Seconds{1}, [&] { seen = numbers(saving->run({read_v_, read_w_}, {}, {.snapshot = true})); });
  // The commit of ps 1 comes after the snapshot.
  network_.plan({.kind = NetworkFault::Kind::kDelay, .message = network_.sent().size() + 6, .time = Seconds{2}});
  training->run(train_);
  EXPECT_THAT(seen, ElementsAre(2, 2));
  EXPECT_EQ(toy(kPs).counts["v"], 2);
  EXPECT_EQ(toy(kPs1).counts["w"], 2);
}

TEST_F(ClusterSessionTest, ASnapshotThatFailsOpensTheGates) {
  start_all();
  const auto session = this->session();
  session->run({read_v_, read_w_}, {}, {.snapshot = true});
  toy(kPs1).fails = std::make_exception_ptr(FailedPreconditionError("Attempting to use uninitialized value w"));
  EXPECT_THROW(session->run({read_v_, read_w_}, {}, {.snapshot = true}), FailedPreconditionError);
  network_.clock().settle();
  EXPECT_EQ(toy(kPs).shut_doors(), 0u);
  EXPECT_EQ(toy(kPs1).shut_doors(), 0u);
  toy(kPs1).fails = nullptr;
  session->run(train_);
}

TEST_F(ClusterSessionTest, ASnapshotMayStayOnItsTasks) {
  start_all();
  const auto session = this->session();
  session->run(train_);
  auto taken = session->take_on_tasks({read_w_, read_v_}, /*global_step=*/1);
  EXPECT_THAT(taken->values(),
              ElementsAre(TakenSnapshot::Value{kPs1, "read_w:0"}, TakenSnapshot::Value{kPs, "read_v:0"}));
  EXPECT_EQ(taken->global_step(), 1);
  for (const std::string& task : {kPs, kPs1}) {
    EXPECT_EQ(toy(task).taken(), 1u);
    EXPECT_EQ(toy(task).shut_doors(), 0u);
  }
  session->run(train_);
  taken->renew({});
  taken = nullptr;
  network_.clock().settle();
  for (const std::string& task : {kPs, kPs1}) EXPECT_EQ(toy(task).taken(), 0u);
}

// ---- Devices and containers ----

TEST_F(ClusterSessionTest, FiltersLeaveOutTasks) {  // MA-3
  start_all();
  ClusterSessionOptions filtered = options();
  filtered.session.device_filters = {"/job:ps/task:0"};
  const auto session = this->session(filtered);
  session->run(add_v_);
  EXPECT_THAT(refusal_of([&] { session->run(train_); }), HasSubstr("Cannot assign a device"));
  std::vector<std::string> names;
  for (const DeviceAttributes& device : session->list_devices()) names.push_back(device.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(kWorker + "/device:CPU:0", kPs + "/device:CPU:0"));
  EXPECT_EQ(network_.calls(kWorker, kPs1), 0u);
  filtered.session.device_filters = {"nonsense"};
  EXPECT_THROW(this->session(filtered), InvalidArgumentError);
}

TEST_F(ClusterSessionTest, ATasksDevicesAreKnownOnceItIsAsked) {
  start_all();
  toy(kPs).device_types = {"CPU"};
  const Operation on_gpu =
      add_one(on("/job:ps/task:0/device:GPU:0"), "on_gpu", variable(on("/job:ps/task:0/device:GPU:0"), "u"));
  const auto session = this->session();
  EXPECT_THAT(refusal_of([&] { session->run(on_gpu); }), HasSubstr("GPU"));
  ClusterSessionOptions soft = options();
  soft.session.allow_soft_placement = true;
  soft.session.log_device_placement = true;
  this->session(soft)->run(on_gpu);
  EXPECT_EQ(toy(kPs).counts["u"], 1);
  EXPECT_THAT(logged_, Contains("on_gpu: (Assign): " + kPs + "/device:CPU:0"));
}

TEST_F(ClusterSessionTest, AResetEndsTheSessions) {  // SS-3, unlike MA-13
  start_all();
  const auto session = this->session();
  session->run(train_);
  reset_tasks(toy(kWorker).transport(), {kPs, kPs1}, {"a", "b"}, {});
  EXPECT_THAT(toy(kPs).resets, ElementsAre("a,b"));
  network_.clock().settle();
  EXPECT_THROW(session->run(train_), AbortedError);
  this->session()->run(train_);
  EXPECT_EQ(toy(kPs).counts["v"], 1);
}

TEST_F(ClusterSessionTest, AResetNamesATaskThatIsAway) {
  start(kWorker);
  start(kPs1);
  const Seconds began = now();
  EXPECT_THAT(error_of<UnavailableError>([&] {
                reset_tasks(toy(kWorker).transport(), {kPs, kPs1}, {"a"}, {.deadline = now() + Seconds{10}});
              }),
              AllOf(HasSubstr("reset on 1 of 2 tasks"), HasSubstr("task " + kPs + " has not answered Reset")));
  EXPECT_LE((now() - began).count(), 2.5);
  EXPECT_THAT(toy(kPs1).resets, ElementsAre("a")) << "the others are reset";
}

TEST_F(ClusterSessionTest, TheDevicesOfATaskThatIsAwayAreLeftOutByName) {
  start(kWorker);
  start(kPs);
  const auto session = this->session();
  session->run(add_v_);
  const Seconds began = now();
  std::vector<std::string> names;
  for (const DeviceAttributes& device : session->list_devices()) names.push_back(device.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(kWorker + "/device:CPU:0", kPs + "/device:CPU:0"));
  EXPECT_LE((now() - began).count(), 2.5);
  EXPECT_THAT(logged_, Contains(HasSubstr("the list of devices has none of task " + kPs1)));
}

TEST_F(ClusterSessionTest, TheDevicesOfTasksThatAreUsedAreKnown) {
  start_all();
  const auto session = this->session();
  session->run(train_);
  const size_t asked = network_.calls(kWorker, kPs);
  session->list_devices();
  EXPECT_EQ(network_.calls(kWorker, kPs), asked);
  network_.kill(kPs);
  pass(Seconds{1});
  EXPECT_THROW(session->list_devices(), AbortedError) << "the session is lost";
}

TEST_F(ClusterSessionTest, AllWhoListenAreToldOfEachTaskThatIsUsed) {
  start_all();
  const auto tasks = SessionTasks::create(toy(kWorker).transport(),
                                          {.session = "0123456789abcdef", .tasks = {kPs, kPs1, kWorker, kOtherWorker}});
  const WaitLimits limits{.deadline = now() + Seconds{10}};
  tasks->use({kPs}, limits);
  std::vector<std::string> first, second;
  const auto one = tasks->on_use([&](const std::string& task) { first.push_back(task); });
  auto other = tasks->on_use([&](const std::string& task) { second.push_back(task); });
  tasks->use({kPs1}, limits);
  EXPECT_THAT(first, ElementsAre(kPs, kPs1));
  EXPECT_THAT(second, ElementsAre(kPs, kPs1));
  other.reset();
  tasks->use({kOtherWorker}, limits);
  EXPECT_THAT(first, ElementsAre(kPs, kPs1, kOtherWorker));
  EXPECT_THAT(second, ElementsAre(kPs, kPs1)) << "it listens no longer";
  tasks->end_watches();
}

}  // namespace
}  // namespace longhaul
