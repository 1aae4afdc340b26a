#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/monitored/monitored_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class MonitoredSessionTest : public MonitoredFixture {};

TEST_F(MonitoredSessionTest, ItBeginsThenMakesTheSessionThenTellsTheHooks) {  // MS-1
  const auto first = add_hook("1 "), second = add_hook("2 ");
  Output added;
  first->on_begin = [&](Graph& begun) { added = ops::constant(Scope(begun), int64_t{7}); };
  first->on_create = [&](Session& session) {
    EXPECT_TRUE(session.graph().finalized());
    EXPECT_EQ(session.run(step).item<int64_t>(), 0);  // initialised
  };
  on_session = [&] { calls.push_back("session"); };
  MonitoredSession session(options);
  EXPECT_THAT(calls, ElementsAre("1 begin", "2 begin", "session", "1 after_create_session", "2 after_create_session"));
  EXPECT_EQ(session.run(added).item<int64_t>(), 7);
}

TEST_F(MonitoredSessionTest, QueueRunnersRunBeforeTheHooksAreTold) {  // MS-1
  const FIFOQueue queue(root, 10, {kInt64}, {.shapes = {Shape{}}});
  int64_t given = 0;
  enqueue_from(root, queue, [&]() -> std::optional<std::vector<Tensor>> {
    if (given == 3) return std::nullopt;
    return std::vector<Tensor>{Tensor::scalar(++given)};
  });
  const Output next = queue.dequeue(root)[0];
  const auto hook = add_hook();
  hook->on_create = [&](Session& session) { EXPECT_EQ(session.run(next).item<int64_t>(), 1); };
  MonitoredSession session(options);
  std::vector<int64_t> taken;
  session.monitor([&] {
    while (!session.should_stop()) taken.push_back(session.run(next).item<int64_t>());
  });
  EXPECT_THAT(taken, ElementsAre(2, 3));
}

TEST_F(MonitoredSessionTest, TheEndOfTheInputIsNoCleanStopForItsThreads) {  // MS-2
  const auto hook = add_hook();
  MonitoredSession session(options);
  report(hook->coord, [] { throw OutOfRangeError("reported by a thread"); });
  EXPECT_EQ(error_of([&] { session.close(); }), "reported by a thread");
}

TEST_F(MonitoredSessionTest, ItEndsTheHooksThenTheThreadsThenTheSession) {  // MS-3
  const auto hook = add_hook();
  bool thread_ended = false;
  hook->on_create = [&](Session& session) {
    const Coordinator coord = hook->coord;
    coord.start_thread("busy", [&, coord] {
      while (!coord.should_stop()) std::this_thread::yield();
      EXPECT_EQ(session.run(step).item<int64_t>(), 0);  // it is still open
      thread_ended = true;
    });
  };
  hook->on_end = [&](Session& session) {
    EXPECT_FALSE(hook->coord.should_stop());
    EXPECT_EQ(session.run(step).item<int64_t>(), 0);
  };
  MonitoredSession session(options);
  session.close();
  EXPECT_TRUE(thread_ended);
  EXPECT_EQ(calls.back(), "end");
  EXPECT_TRUE(session.should_stop());
}

TEST_F(MonitoredSessionTest, ALostSessionIsNoErrorOfTheClose) {  // MS-3
  const auto hook = add_hook();
  MonitoredSession session(options);
  report(hook->coord, [] { throw AbortedError("preempted"); });
  const LogRecorder log;
  session.close();
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("preempted"));
}

TEST_F(MonitoredSessionTest, TheEndOfTheInputEndsItWell) {  // MS-4
  add_hook();
  MonitoredSession session(options);
  bool went_on = false;
  session.monitor([&] {
    throw OutOfRangeError("no more");
    went_on = true;
  });
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(session.should_stop());
  EXPECT_THAT(calls, ElementsAre("begin", "after_create_session", "end"));
}

TEST_F(MonitoredSessionTest, AStopIterationEndsItWell) {  // MS-4
  add_hook();
  MonitoredSession session(options);
  session.monitor([] { throw StopIteration("enough"); });
  EXPECT_TRUE(session.should_stop());
  EXPECT_EQ(calls.back(), "end");
}

TEST_F(MonitoredSessionTest, AnyOtherErrorComesOutAndTheHooksDoNotEnd) {  // MS-5
  add_hook();
  const Operation failing = code([] { throw UnknownError("in the run"); });
  MonitoredSession session(options);
  EXPECT_THAT(error_of([&] { session.monitor([&] { session.run(failing); }); }), HasSubstr("in the run"));
  EXPECT_TRUE(session.should_stop());
  EXPECT_EQ(calls.back(), "before_run");

  MonitoredSession another(options);
  EXPECT_THROW(another.monitor([] { throw std::runtime_error("in the body"); }), std::runtime_error);
  EXPECT_EQ(calls.back(), "after_create_session");
}

TEST_F(MonitoredSessionTest, AnErrorOfAThreadComesOutAtTheEnd) {  // MS-6
  const auto hook = add_hook();
  MonitoredSession session(options);
  int64_t steps = 0;
  const auto body = [&] {
    train_once(session);
    report(hook->coord, [] { throw UnknownError("a thread wants to stop"); });
    EXPECT_TRUE(session.should_stop());
    steps = train_once(session);
  };
  EXPECT_EQ(error_of([&] { session.monitor(body); }), "a thread wants to stop");
  EXPECT_EQ(steps, 2);
  EXPECT_TRUE(session.should_stop());
  EXPECT_EQ(calls.back(), "end");  // the body has ended well
}

TEST_F(MonitoredSessionTest, AnErrorOfAThreadDuringARunLetsThatRunEndWell) {  // MS-6
  const auto hook = add_hook();
  bool is_reported = false;
  hook->on_before = [&](SessionRunContext&) {
    if (std::exchange(is_reported, true)) return;
    report(hook->coord, [] { throw UnknownError("a thread wants to stop"); });
  };
  MonitoredSession session(options);
  std::vector<int64_t> steps;
  const auto body = [&] {
    for (int i = 0; i < 2; ++i) steps.push_back(train_once(session));
  };
  EXPECT_EQ(error_of([&] { session.monitor(body); }), "a thread wants to stop");
  EXPECT_THAT(steps, ElementsAre(1, 2));
  EXPECT_TRUE(session.should_stop());
}

TEST_F(MonitoredSessionTest, AnErrorOfAThreadOutranksTheBodys) {  // MS-6
  const auto hook = add_hook();
  MonitoredSession session(options);
  const LogRecorder log;
  const auto body = [&] {
    report(hook->coord, [] { throw UnknownError("the cause"); });
    throw CancelledError("a consequence");
  };
  EXPECT_EQ(error_of([&] { session.monitor(body); }), "the cause");
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("a consequence"));
}

TEST_F(MonitoredSessionTest, TheBodyIsNotToCloseIt) {  // MS-7
  MonitoredSession session(options);
  EXPECT_EQ(error_of([&] { session.monitor([&] { session.close(); }); }), "Session is already closed.");
  EXPECT_EQ(error_of([&] { session.run(train); }), "Session is already closed.");
}

TEST_F(MonitoredSessionTest, AHooksStopEndsTheRuns) {  // MS-7
  const auto hook = add_hook();
  hook->on_after = [](SessionRunContext& context, const SessionRunValues&) { context.request_stop(); };
  MonitoredSession session(options);
  EXPECT_FALSE(session.should_stop());
  session.run(train);
  EXPECT_TRUE(session.should_stop());
  EXPECT_EQ(error_of([&] { session.run(train); }),
            "Run called even after should_stop requested. End the loop when session.should_stop() is true");
}

TEST_F(MonitoredSessionTest, ARunAfterAHooksStopIsAnErrorButTheHooksEnd) {  // unlike MS-5
  add_hook()->on_after = [](SessionRunContext& context, const SessionRunValues&) { context.request_stop(); };
  MonitoredSession session(options);
  EXPECT_THAT(error_of([&] {
                session.monitor([&] {
                  while (true) session.run(train);
                });
              }),
              HasSubstr("Run called even after should_stop requested."));
  EXPECT_EQ(calls.back(), "end");
}

TEST_F(MonitoredSessionTest, RunsThatGoOnAfterAStopAreReportedOnce) {
  MonitoredSession session(options);
  const LogRecorder log;
  session.run(train);
  clock.advance(Seconds{60});
  coordinator.request_stop();
  session.run(train);
  clock.advance(Seconds{9});
  session.run(train);
  EXPECT_THAT(log.text(), Not(HasSubstr("still calls run()")));
  clock.advance(Seconds{1});
  session.run(train);
  const std::string text = log.text(LogLevel::kWarning);
  EXPECT_THAT(text, HasSubstr("a stop was requested 10 s ago, but the program still calls run(): end its loop when "
                              "session.should_stop() is true"));
  session.run(train);
  EXPECT_EQ(log.text(LogLevel::kWarning), text);
}

TEST_F(MonitoredSessionTest, TheGraphIsFinalizedWhileItIsOpen) {  // MS-8
  {
    MonitoredSession session(options);
    EXPECT_TRUE(graph.finalized());
    session.close();
    EXPECT_FALSE(graph.finalized());
  }
  {
    const MonitoredSession session(options);
  }
  EXPECT_FALSE(graph.finalized());
  graph.finalize();
  {
    const MonitoredSession session(options);
  }
  EXPECT_TRUE(graph.finalized());
}

TEST_F(MonitoredSessionTest, AGraphWhoseSessionCouldNotBeMadeCanBeChangedAgain) {  // MS-8
  add_hook()->on_create = [](Session&) { throw InvalidArgumentError("not this one"); };
  EXPECT_THAT(error_of([&] { MonitoredSession session(options); }),
              HasSubstr("failed in after_create_session: not this one"));
  EXPECT_FALSE(graph.finalized());
}

TEST_F(MonitoredSessionTest, WithoutOptionsItIsOneOfTheDefaultGraph) {  // MS-10
  Scope(Graph::default_graph()).add("NoOp", "something");
  EXPECT_EQ(&MonitoredSession().graph(), &Graph::default_graph());
}

TEST_F(MonitoredSessionTest, ItGoesOnFromADirectoryOrAFile) {  // MS-10
  std::string prefix;
  {
    MonitoredSession session(options);
    train_once(session);
    train_once(session);
    prefix = session.run_step_fn([&](StepContext& context) {
      return scaffold->saver()->save(context.session(), directory.file("model.ckpt"), step);
    });
    session.close();
  }
  MonitoredSession from_directory(options);
  EXPECT_EQ(from_directory.run(step).item<int64_t>(), 2);
  from_directory.close();
  SingularMonitoredSession from_file({.graph = &graph, .checkpoint_filename_with_path = prefix});
  EXPECT_EQ(from_file.run(step).item<int64_t>(), 2);
}

TEST_F(MonitoredSessionTest, ItIsNoSession) {  // unlike MS-11
  EXPECT_FALSE((std::is_convertible_v<MonitoredSession&, Session&>));
  EXPECT_FALSE(
      (std::is_invocable_v<decltype(&Saver::save), Saver&, MonitoredSession&, std::string, StepSource, SaveOptions>));
  using Start = decltype(&start_queue_runners);
  EXPECT_TRUE((std::is_invocable_v<Start, std::shared_ptr<Session>, std::nullopt_t, bool, std::string>));
  EXPECT_FALSE((std::is_invocable_v<Start, std::shared_ptr<MonitoredSession>, std::nullopt_t, bool, std::string>));
}

TEST_F(MonitoredSessionTest, NullPointersAreNoHooks) {
  options.hooks = {nullptr};
  EXPECT_THROW(MonitoredSession session(options), InvalidArgumentError);
}

TEST_F(MonitoredSessionTest, WhoIsNotClosedHasNotEndedWell) {
  const auto hook = add_hook();
  {
    const MonitoredSession session(options);
  }
  EXPECT_EQ(calls.back(), "after_create_session");
  EXPECT_TRUE(hook->coord.joined());
}

TEST_F(MonitoredSessionTest, AStopOfTheProgramsCoordinatorEndsIt) {
  add_hook();
  MonitoredSession session(options);
  int64_t steps = 0;
  session.monitor([&] {
    while (!session.should_stop()) {
      steps = train_once(session);
      if (steps == 3) coordinator.request_stop();
    }
  });
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(calls.back(), "end");
}

TEST_F(MonitoredSessionTest, AnErrorOfAHooksEndComesOut) {
  const auto hook = add_hook();
  hook->on_end = [](Session&) { throw OutOfRangeError("at the end"); };
  MonitoredSession session(options);
  EXPECT_THROW(session.close(), OutOfRangeError);
  EXPECT_TRUE(hook->coord.joined());
  EXPECT_FALSE(graph.finalized());
}

TEST_F(MonitoredSessionTest, ACallableRunsWithTheHooks) {
  const Output x = ops::placeholder(root, kInt64, {}, "x"), y = ops::placeholder(root, kInt64, {}, "y");
  const auto hook = add_hook();
  hook->wants = {.fetches = {step}};
  MonitoredSession session(options);
  MonitoredCallable both = session.make_callable({y, "x:0"}, {x, "y:0"});
  const std::vector<Tensor> values = both(Tensor::scalar<int64_t>(1), Tensor::scalar<int64_t>(2));
  ASSERT_THAT(values, SizeIs(2));
  EXPECT_EQ(values[0].item<int64_t>(), 2);
  EXPECT_EQ(values[1].item<int64_t>(), 1);
  EXPECT_THAT(hook->results, SizeIs(1));
  EXPECT_THROW(both(Tensor::scalar<int64_t>(1)), InvalidArgumentError);
  EXPECT_THROW(session.make_callable("nothing"), NotFoundError);
}

TEST_F(MonitoredSessionTest, WhatACallableIsFedReachesHooksAndTracedRuns) {
  const Output x = ops::placeholder(root, kInt64, {}, "x");
  const auto hook = add_hook();
  int64_t seen = 0;
  hook->on_before = [&](SessionRunContext& context) {
    seen = context.original_args().feeds[0].second.item<int64_t>();
    hook->wants = {.options = {.trace_level = seen == 2 ? TraceLevel::kFullTrace : TraceLevel::kNoTrace}};
  };
  MonitoredSession session(options);
  MonitoredCallable same = session.make_callable(x, {x});
  for (int64_t fed = 1; fed <= 3; ++fed) {
    EXPECT_EQ(same(Tensor::scalar(fed))[0].item<int64_t>(), fed);
    EXPECT_EQ(seen, fed);
  }
}

}  // namespace
}  // namespace longhaul
