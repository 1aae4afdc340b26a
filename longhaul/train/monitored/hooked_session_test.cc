#include "longhaul/train/monitored/hooked_session.h"

#include "longhaul/ops/external_variable.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/train/monitored/monitored_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A session that counts what is compiled, and keeps what it was asked for last.
class CountingSession : public testing::ScriptedSession {
 public:
  explicit CountingSession(Graph& graph) : ScriptedSession(graph) {
    before_each_run([this](int, const Request& request) { last = request; });
  }
  std::shared_ptr<CompiledRun> do_make_callable(const Request& request) override {
    ++compiled;
    return ScriptedSession::do_make_callable(request);
  }
  int compiled = 0;
  Request last;
};

class HookedSessionTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordingHook> add_hook(const std::string& name = "") {
    hooks.push_back(std::make_shared<RecordingHook>(&calls, name));
    return std::static_pointer_cast<RecordingHook>(hooks.back());
  }
  Output placeholder(const char* name) { return ops::placeholder(root, kInt64, {}, name); }
  static Tensor number(int64_t value) { return Tensor::scalar(value); }
  std::vector<int64_t> run(HookedSession& session, const SessionRunArgs& args) {
    std::vector<int64_t> values;
    for (const Tensor& value : session.run(args)) values.push_back(value.item<int64_t>());
    return values;
  }

  Graph graph;
  Scope root{graph};
  Output zero = ops::constant(root, int64_t{0}), five = ops::constant(root, int64_t{5}),
         ten = ops::constant(root, int64_t{10});
  Output a = placeholder("a"), b = placeholder("b"), c = placeholder("c");
  Output sum = ops::host_function(root, {a, b, c}, {kInt64}, [](const std::vector<Tensor>& terms) {
                 int64_t total = 0;
                 for (const Tensor& term : terms) total += term.item<int64_t>();
                 return std::vector<Tensor>{number(total)};
               }).output();
  std::vector<std::string> calls;
  SessionRunHooks hooks;
  std::shared_ptr<CountingSession> raw = std::make_shared<CountingSession>(graph);
};

TEST_F(HookedSessionTest, EachRunIsMadeBetweenTheHooksCallsInTheirOrder) {  // MH-1
  add_hook("1 ");
  add_hook("2 ");
  HookedSession session(raw, hooks);
  raw->before_each_run([&](int, const Session::Request&) { calls.push_back("run"); });
  EXPECT_THAT(run(session, {.fetches = {zero}}), ElementsAre(0));
  EXPECT_THAT(calls, ElementsAre("1 before_run", "2 before_run", "run", "1 after_run", "2 after_run"));
}

TEST_F(HookedSessionTest, AHookSeesTheCallersArgumentsAndItsOwnResults) {  // MH-1
  const auto hook = add_hook();
  HookedSession session(raw, hooks);
  SessionRunArgs original;
  hook->on_before = [&](SessionRunContext& context) {
    original = context.original_args();
    EXPECT_EQ(&context.session(), raw.get());
  };
  hook->on_after = [&](SessionRunContext&, const SessionRunValues& values) {
    EXPECT_EQ(values.options->timeout, Seconds{7});
    EXPECT_EQ(values.run_metadata, nullptr);
  };
  run(session, {.fetches = {sum},
                .feeds = {{a, number(1)}, {b, number(2)}, {c, number(3)}},
                .options = {.timeout = Seconds{7}}});
  EXPECT_THAT(original.fetches, ElementsAre(Fetch(sum)));
  EXPECT_THAT(original.feeds, SizeIs(3));
  EXPECT_EQ(original.options.timeout, Seconds{7});
  EXPECT_THAT(hook->results, IsEmpty());  // it has asked for nothing
}

TEST_F(HookedSessionTest, EachGetsWhatItHasAskedFor) {  // MH-2
  const auto first = add_hook(), second = add_hook(), none = add_hook();
  first->wants = {.fetches = {five}};
  second->wants = {.fetches = {ten, five}};
  HookedSession session(raw, hooks);
  EXPECT_THAT(run(session, {.fetches = {zero}}), ElementsAre(0));
  ASSERT_THAT(first->results, SizeIs(1));
  EXPECT_EQ(first->results[0].item<int64_t>(), 5);
  ASSERT_THAT(second->results, SizeIs(2));
  EXPECT_EQ(second->results[0].item<int64_t>(), 10);
  EXPECT_EQ(second->results[1].item<int64_t>(), 5);
  EXPECT_THAT(none->results, IsEmpty());
}

TEST_F(HookedSessionTest, WhatSeveralWantIsFetchedOnce) {
  const auto both = add_hook(), last = add_hook();
  both->wants = {.fetches = {five, ten}};
  last->wants = {.fetches = {ten}};
  HookedSession session(raw, hooks);
  EXPECT_THAT(run(session, {.fetches = {zero}}), ElementsAre(0));
  EXPECT_THAT(raw->last.fetches, SizeIs(3));
  EXPECT_EQ(both->results[1].item<int64_t>(), 10);
  EXPECT_EQ(last->results[0].item<int64_t>(), 10);
}

TEST_F(HookedSessionTest, FeedsOfAllAreMerged) {  // MH-3
  add_hook()->wants = {.feeds = {{b, number(5)}}};
  add_hook()->wants = {.feeds = {{c, number(10)}}};
  HookedSession session(raw, hooks);
  const SessionRunArgs args{.fetches = {sum}, .feeds = {{a, number(20)}}};
  EXPECT_THAT(run(session, args), ElementsAre(35));
  EXPECT_THAT(args.feeds, SizeIs(1));
}

TEST_F(HookedSessionTest, ATensorIsFedByOneOnly) {  // MH-3
  add_hook()->wants = {.feeds = {{b, number(5)}}};
  HookedSession with_caller(raw, hooks);
  EXPECT_THAT(error_of([&] { run(with_caller, {.fetches = {b}, .feeds = {{"b:0", number(1)}}}); }),
              HasSubstr("Same tensor is fed by a hook and the caller: b:0"));
  EXPECT_THAT(error_of([&] {
                run(with_caller, {.fetches = {b}, .feeds = {{b, number(1)}}, .options = {.timeout = Seconds{1}}});
              }),
              HasSubstr("Same tensor is fed"));
  add_hook()->wants = {.feeds = {{b, number(5)}}};
  HookedSession with_hook(raw, hooks);
  EXPECT_THAT(error_of([&] { run(with_hook, {.fetches = {b}}); }), HasSubstr("Same tensor is fed by two hooks"));
}

TEST_F(HookedSessionTest, AStopIsHeededAfterAllHooksWereTold) {  // MH-4
  const auto stopping = add_hook("1 ");
  add_hook("2 ");
  stopping->on_after = [](SessionRunContext& context, const SessionRunValues&) { context.request_stop(); };
  HookedSession session(raw, hooks);
  EXPECT_FALSE(session.stop_requested());
  run(session, {.fetches = {zero}});
  EXPECT_TRUE(session.stop_requested());
  EXPECT_EQ(calls.back(), "2 after_run");
  EXPECT_THAT(error_of([&] { run(session, {.fetches = {zero}}); }),
              HasSubstr("Run called even after should_stop requested."));
}

TEST_F(HookedSessionTest, OptionsOfAllAreMerged) {  // MH-5
  add_hook()->wants = {.options = {.timeout = Seconds{60}, .trace_level = TraceLevel::kNoTrace}};
  add_hook()->wants = {.options = {.timeout = Seconds{30}, .trace_level = TraceLevel::kFullTrace}};
  HookedSession session(raw, hooks);
  run(session,
      {.fetches = {zero}, .options = {.trace_level = TraceLevel::kSoftwareTrace, .output_partition_graphs = true}});
  EXPECT_EQ(
      raw->last.options,
      (RunOptions{.timeout = Seconds{60}, .trace_level = TraceLevel::kFullTrace, .output_partition_graphs = true}));
}

TEST_F(HookedSessionTest, ARunHasOneCancellationWhosoeverItIs) {
  Cancellation one, other;
  add_hook()->wants = {.options = {.cancellation = &one}};
  HookedSession session(raw, hooks);
  run(session, {.fetches = {zero}});
  EXPECT_EQ(raw->last.options.cancellation, &one);
  run(session, {.fetches = {zero}, .options = {.cancellation = &one}});
  EXPECT_EQ(raw->last.options.cancellation, &one);
  EXPECT_THAT(
      error_of<InvalidArgumentError>([&] { run(session, {.fetches = {zero}, .options = {.cancellation = &other}}); }),
      HasSubstr("RunOptions::cancellation is set twice"));
}

TEST_F(HookedSessionTest, ASnapshotForOneIsOneForAll) {
  add_hook()->wants = {.fetches = {five}, .options = {.snapshot = true}};
  HookedSession session(raw, hooks);
  EXPECT_THAT(run(session, {.fetches = {zero}}), ElementsAre(0));
  EXPECT_EQ(raw->snapshot_runs(), 1);
}

TEST_F(HookedSessionTest, FeedsOptionsAndMetadataReachTheSession) {  // MH-6
  const auto hook = add_hook();
  const proto::RunMetadata* seen = nullptr;
  hook->on_after = [&](SessionRunContext&, const SessionRunValues& values) { seen = values.run_metadata; };
  HookedSession session(raw, hooks);
  proto::RunMetadata metadata;
  const SessionRunArgs args{
      .fetches = {a, five}, .feeds = {{a, number(4)}}, .options = {.trace_level = TraceLevel::kFullTrace}};
  EXPECT_EQ(session.run(args, {}, &metadata)[0].item<int64_t>(), 4);
  EXPECT_THAT(raw->last.feeds, ElementsAre(a));
  EXPECT_EQ(raw->last.options.trace_level, TraceLevel::kFullTrace);
  EXPECT_GT(metadata.step_stats().dev_stats_size(), 0);
  EXPECT_EQ(seen, &metadata);
}

TEST_F(HookedSessionTest, AHookThatAsksForATraceGetsIt) {
  const auto hook = add_hook();
  hook->wants = {.options = {.trace_level = TraceLevel::kFullTrace}};
  int devices = 0;
  hook->on_after = [&](SessionRunContext&, const SessionRunValues& values) {
    devices = values.run_metadata->step_stats().dev_stats_size();
  };
  HookedSession session(raw, hooks);
  run(session, {.fetches = {zero}});
  EXPECT_GT(devices, 0);
}

TEST_F(HookedSessionTest, RunsOfOneKindAreCompiledOnce) {
  const auto hook = add_hook();
  HookedSession session(raw, hooks);
  for (int i = 0; i < 6; ++i) {
    hook->wants = {.fetches = {i % 2 == 0 ? five : ten}};
    EXPECT_THAT(run(session, {.fetches = {a}, .feeds = {{a, number(i)}}}), ElementsAre(i));
    EXPECT_EQ(hook->results[0].item<int64_t>(), i % 2 == 0 ? 5 : 10);
  }
  EXPECT_EQ(raw->compiled, 2);
}

TEST_F(HookedSessionTest, ManyKindsOfRunsAreNotAllKept) {
  HookedSession session(raw, {});
  for (int round = 0; round < 2; ++round) {
    for (int64_t i = 0; i < 40; ++i) {
      EXPECT_THAT(run(session, {.fetches = std::vector<Fetch>(static_cast<size_t>(i + 1), five)}),
                  SizeIs(static_cast<size_t>(i + 1)));
    }
  }
  EXPECT_EQ(raw->compiled, 80);
}

TEST_F(HookedSessionTest, AnErrorSaysWhichHookAndWhichCall) {
  const auto hook = add_hook();
  hook->on_before = [](SessionRunContext&) { throw InvalidArgumentError("no batch"); };
  HookedSession session(raw, hooks);
  EXPECT_THROW(run(session, {.fetches = {zero}}), InvalidArgumentError);
  EXPECT_EQ(error_of([&] { run(session, {.fetches = {zero}}); }),
            "hook longhaul::RecordingHook failed in before_run: no batch");
  EXPECT_EQ(raw->runs(), 0);
}

class OwnError : public Error {
 public:
  OwnError() : Error(Code::kAborted, "of its own kind") {}
};

TEST_F(HookedSessionTest, AnErrorOfAnotherClassStaysAsItIsAndIsLogged) {
  const auto hook = add_hook();
  hook->on_after = [](SessionRunContext&, const SessionRunValues&) { throw OwnError(); };
  HookedSession session(raw, hooks);
  const LogRecorder log;
  EXPECT_THROW(run(session, {.fetches = {zero}}), OwnError);
  EXPECT_THAT(log.text(), HasSubstr("hook longhaul::RecordingHook failed in after_run: of its own kind"));
  hook->on_after = [](SessionRunContext&, const SessionRunValues&) { throw std::out_of_range("not the library's"); };
  EXPECT_THROW(run(session, {.fetches = {zero}}), std::out_of_range);
}

// A bound program (torch_training()), whose loss is that of a step.
class HookedProgramTest : public HookedSessionTest {
 protected:
  HookedProgramTest() {
    raw->on("ProgramStep", [](const Operation&, const std::vector<Tensor>&) { return std::vector<Tensor>(); });
    raw->run(ops::global_variables_initializer(root));
  }

  Variable count = ops::variable(root, "count", number(0), {.trainable = false});
  Operation made = ops::program_step(root, count, {}, [](int64_t, const std::vector<Tensor>&) {});
  Scope after = root.with_control_dependencies({made});
  Operation train = ops::host_function(after, {}, {}, [](const auto&) { return std::vector<Tensor>(); }, "train");
  Output loss = ops::host_function(
                    after, {}, {kInt64}, [](const auto&) { return std::vector<Tensor>{number(1)}; }, "loss")
                    .output();
  LogRecorder log;
};

TEST_F(HookedProgramTest, ARunThatAHookMakesATrainingStepIsToldOnce) {
  add_hook();
  add_hook()->wants = {.fetches = {loss}};
  HookedSession session(raw, hooks);
  session.run({.fetches = {count}});
  EXPECT_THAT(log.text(LogLevel::kWarning),
              AllOf(HasSubstr("a run of " + Output(count).name() + " is a training step"),
                    HasSubstr("the hook longhaul::RecordingHook fetches loss:0"), HasSubstr("session.run_step_fn(")));
  const std::string told = log.text();
  session.run({.fetches = {zero}});
  EXPECT_EQ(log.text(), told);
}

TEST_F(HookedProgramTest, ATracedRunThatAHookMakesATrainingStepIsToldToo) {
  add_hook()->wants = {.fetches = {loss}, .options = {.trace_level = TraceLevel::kFullTrace}};
  HookedSession session(raw, hooks);
  session.run({.fetches = {count}});
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("is a training step"));
}

TEST_F(HookedProgramTest, AHookThatFetchesTheLossOfATrainingStepIsNotWarnedOf) {
  const auto hook = add_hook();
  hook->wants = {.fetches = {loss}};
  HookedSession session(raw, hooks);
  session.run({.fetches = {train}});
  session.run({.fetches = {loss, count}});
  hook->wants = {.fetches = {count}};
  session.run({.fetches = {count}});
  EXPECT_THAT(log.text(LogLevel::kWarning), IsEmpty());
}

}  // namespace
}  // namespace longhaul
