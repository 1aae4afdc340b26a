#include "longhaul/train/input/queue_runner.h"

#include <atomic>
#include <thread>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/testing/no_new_threads_fixture.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Counters and queues in a graph, and sessions that interpret it.
class QueueRunnerTest : public ::testing::Test {
 protected:
  Output counter(const std::string& name, int64_t limit) {
    const Variable variable = ops::variable(root, name, Tensor::scalar(int64_t{0}), {.trainable = false});
    counters.push_back(variable);
    return ops::count_up_to(root, variable, limit);
  }
  std::shared_ptr<Session> new_session() {
    std::shared_ptr<Session> session = make_scripted_session(graph);
    for (const Variable& variable : counters) session->run(variable.initializer());
    return session;
  }
  static void join_all(const QueueRunnerThreads& threads) {
    for (const auto& thread : threads) thread->join();
  }
  static std::vector<std::string> names_of(const QueueRunnerThreads& threads) {
    std::vector<std::string> names;
    for (const auto& thread : threads) names.push_back(thread->name());
    return names;
  }
  static int64_t value(Session& session, const Output& output) { return session.run(output).item<int64_t>(); }
  template <typename Condition>
  static void eventually(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
    ASSERT_TRUE(condition());
  }

  Graph graph;
  Scope root{graph};
  std::vector<Variable> counters;
  const ThreadsEnd threads_end;
};

TEST_F(QueueRunnerTest, RunsItsOperationUntilTheInputEnds) {  // QR-1, QR-2
  const Output count = counter("var", 3);
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner runner(root, queue, {count});
  const auto session = new_session();
  const QueueRunnerThreads threads = runner.create_threads(session);
  EXPECT_THAT(names_of(threads), ElementsAre("QueueRunnerThread-fifo_queue-CountUpTo:0"));
  EXPECT_FALSE(threads[0]->finished());
  threads[0]->start();
  join_all(threads);
  EXPECT_TRUE(threads[0]->finished());
  EXPECT_THAT(runner.exceptions_raised(), IsEmpty());
  EXPECT_EQ(value(*session, counters[0]), 3);
}

TEST_F(QueueRunnerTest, HasAThreadForEachOperation) {  // QR-1, QR-2
  const Output count3 = counter("var0", 3), count30 = counter("var1", 30);
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner runner(root, queue, {count3, count30});
  const auto session = new_session();
  const QueueRunnerThreads threads = runner.create_threads(session, std::nullopt, /*start=*/true);
  EXPECT_THAT(names_of(threads), UnorderedElementsAre("QueueRunnerThread-fifo_queue-CountUpTo:0",
                                                      "QueueRunnerThread-fifo_queue-CountUpTo_1:0"));
  join_all(threads);
  EXPECT_THAT(runner.exceptions_raised(), IsEmpty());
  EXPECT_EQ(value(*session, counters[0]), 3);
  EXPECT_EQ(value(*session, counters[1]), 30);
}

TEST_F(QueueRunnerTest, CollectsErrorsWhereThereIsNoCoordinator) {  // unlike QR-4
  const LogRecorder log;
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner runner(root, queue, {"i fail", "so fail"});
  join_all(runner.create_threads(new_session(), std::nullopt, /*start=*/true));
  const auto errors = runner.exceptions_raised();
  ASSERT_THAT(errors, SizeIs(2));
  for (const auto& error : errors) EXPECT_THAT(message_of(error), HasSubstr("Operation not in the graph"));
  EXPECT_THAT(log.text(), HasSubstr("Exception in QueueRunner: "));
}

TEST_F(QueueRunnerTest, AnErrorIsListedBeforeTheQueueIsClosed) {
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner* runner = nullptr;
  size_t listed_at_the_close = 0;
  const auto look = [&](const auto&) -> std::vector<Tensor> {
    listed_at_the_close = runner->exceptions_raised().size();
    return {};
  };
  const QueueRunner failing(root, queue, {"i fail"}, {.close_op = ops::host_function(root, {}, {}, look)});
  runner = &failing;
  join_all(failing.create_threads(new_session(), std::nullopt, /*start=*/true));
  EXPECT_EQ(listed_at_the_close, 1u);
}

TEST_F(QueueRunnerTest, AThreadThatCannotBeStartedEndsTheQueue) {
  const FIFOQueue queue(root, 10, {kFloat}, {.shapes = {Shape{}}});
  const QueueRunner runner(root, queue, {queue.enqueue(root, {ops::constant(root, 1.f)})});
  for (const bool with_coordinator : {false, true}) {
    const auto session = new_session();
    const Coordinator coord;
    {
      const NoNewThreads full;
      EXPECT_THROW(runner.create_threads(session, with_coordinator ? std::optional(coord) : std::nullopt,
                                         /*start=*/true),
                   ResourceExhaustedError);
    }
    const Fetch element = queue.dequeue(root)[0];
    EXPECT_THAT(error_of([&] { session->run(element, {}, {.timeout = Seconds{20}}); }), HasSubstr("is closed"));
    EXPECT_EQ(coord.should_stop(), with_coordinator);
    EXPECT_EQ(error_of([&] { coord.join({.stop_grace = Seconds{20}}); }).empty(), !with_coordinator);
    EXPECT_THAT(runner.create_threads(session), SizeIs(1)) << "those before are forgotten";
  }
}

TEST_F(QueueRunnerTest, PassesElementsOnAndClosesBehindTheLast) {  // QR-3
  const FIFOQueue upstream(root, 10, {kFloat}, {.shapes = {Shape{}}, .name = "upstream"});
  const FIFOQueue downstream(root, 10, {kFloat}, {.shapes = {Shape{}}, .name = "downstream"});
  const QueueRunner runner(root, downstream, {downstream.enqueue(root, upstream.dequeue(root))});
  const auto session = new_session();
  session->run(upstream.enqueue_many(root, {ops::constant(root, Tensor::of<float>({1, 2}))}));
  session->run(upstream.close(root));
  join_all(runner.create_threads(session, std::nullopt, /*start=*/true));
  EXPECT_THAT(runner.exceptions_raised(), IsEmpty());
  const Output element = downstream.dequeue(root)[0];
  EXPECT_EQ(session->run(element).item<float>(), 1);
  EXPECT_EQ(session->run(element).item<float>(), 2);
  EXPECT_THAT(error_of([&] { session->run(element); }), HasSubstr("is closed"));
}

TEST_F(QueueRunnerTest, TheLastThreadOfASessionClosesTheQueue) {  // QR-3, QR-12
  std::atomic<bool> more{true};
  const FIFOQueue queue(root, 100, {kInt64});
  const Output count = counter("var", 3);
  const auto source = [&](const std::vector<Tensor>&) -> std::vector<Tensor> {
    if (!more) throw OutOfRangeError("the end");
    std::this_thread::yield();
    return {};
  };
  const Operation slow = ops::host_function(root, {}, {}, source);
  const QueueRunner runner(root, queue, {queue.enqueue(root, {count}), slow});
  const Output closed = queue.is_closed(root), size = queue.size(root);
  const auto session = new_session();
  Coordinator coord;
  const QueueRunnerThreads threads = runner.create_threads(session, coord, /*start=*/true);
  eventually([&] { return threads[0]->finished(); });
  EXPECT_FALSE(session->run(closed).item<bool>());
  more = false;
  eventually([&] { return threads[1]->finished(); });
  EXPECT_TRUE(session->run(closed).item<bool>());
  EXPECT_EQ(session->run(size).item<int64_t>(), 3) << "what is in it stays";
  EXPECT_FALSE(coord.should_stop()) << "the end of the input is no stop";
  coord.request_stop();
  coord.join();
}

TEST_F(QueueRunnerTest, RespectsAStopThatCameBefore) {  // QR-6
  const Output count = counter("var", 3);
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner runner(root, queue, {count});
  const auto session = new_session();
  Coordinator coord;
  coord.request_stop();
  runner.create_threads(session, coord, /*start=*/true);
  coord.join();
  EXPECT_EQ(value(*session, counters[0]), 0);
}

TEST_F(QueueRunnerTest, TellsErrorsToItsCoordinator) {  // QR-1, QR-5
  const FIFOQueue queue(root, 10, {kFloat});
  const Operation bad = ops::host_function(
      root, {}, {}, [](const auto&) -> std::vector<Tensor> { throw InvalidArgumentError("expected"); }, "bad_op");
  const QueueRunner runner(root, queue, {bad});
  Coordinator coord;
  const QueueRunnerThreads threads = runner.create_threads(new_session(), coord, /*start=*/true);
  EXPECT_THAT(names_of(threads), UnorderedElementsAre("QueueRunnerThread-fifo_queue-bad_op",
                                                      "QueueRunnerThread-fifo_queue-close_on_stop"));
  EXPECT_THROW(coord.join(), InvalidArgumentError);
  EXPECT_THAT(runner.exceptions_raised(), IsEmpty());
}

TEST_F(QueueRunnerTest, AStopEndsAnEnqueueThatWaits) {  // QR-7
  const FIFOQueue queue(root, 2, {kFloat});
  const Operation enqueue = queue.enqueue(root, {ops::constant(root, 10.f)});
  const QueueRunner runner(root, queue, {enqueue});
  const Output size = queue.size(root);
  const auto session = new_session();
  Coordinator coord;
  runner.create_threads(session, coord, /*start=*/true);
  eventually([&] { return session->run(size).item<int64_t>() == 2; });
  coord.request_stop();
  coord.join({.stop_grace = Seconds{20}});
}

TEST_F(QueueRunnerTest, SessionsHaveThreadsOfTheirOwn) {  // QR-8
  const Output count = counter("var", 3);
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner runner(root, queue, {count});
  Coordinator coord;
  const auto first = new_session(), second = new_session();
  const QueueRunnerThreads threads = runner.create_threads(first, coord);
  const QueueRunnerThreads others = runner.create_threads(second, coord);
  EXPECT_THAT(threads, SizeIs(2));
  EXPECT_THAT(others, SizeIs(2));
}

TEST_F(QueueRunnerTest, IgnoresASecondStart) {  // QR-8
  const Output count = counter("var", 3);
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner runner(root, queue, {count});
  const auto session = new_session();
  Coordinator coord;
  const QueueRunnerThreads threads = runner.create_threads(session, coord);
  EXPECT_THAT(runner.create_threads(session, coord), IsEmpty());
  EXPECT_THAT(QueueRunner(runner.to_proto()).create_threads(session, coord), IsEmpty()) << "it is the same queue's";
}

TEST_F(QueueRunnerTest, ANewSetCanBeMadeWhenTheThreadsHaveEnded) {  // QR-8
  const Output count = counter("var", 3);
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner runner(root, queue, {count, "no such op"});
  const auto session = new_session();
  for (int round = 0; round < 2; ++round) {
    const QueueRunnerThreads threads = runner.create_threads(session, std::nullopt, /*start=*/true);
    ASSERT_THAT(threads, SizeIs(2));
    join_all(threads);
    EXPECT_THAT(runner.exceptions_raised(), SizeIs(1)) << "of these threads alone";
  }
}

TEST_F(QueueRunnerTest, ThreadsThatWereNeverStartedAreForgotten) {
  const Output count = counter("var", 3);
  const QueueRunner runner(root, FIFOQueue(root, 10, {kFloat}), {count});
  const auto session = new_session();
  EXPECT_THAT(runner.create_threads(session), SizeIs(1));
  EXPECT_THAT(runner.create_threads(session), SizeIs(1));
}

TEST_F(QueueRunnerTest, HasTheNameOfItsQueue) {  // QR-9
  const Scope inner = root.sub("scope");
  const FIFOQueue queue(inner, 10, {kFloat}, {.name = "queue"});
  const QueueRunner runner(inner, queue, {ops::no_op(root)});
  EXPECT_EQ(runner.name(), "scope/queue");
  add_queue_runner(graph, runner);
  EXPECT_THAT(queue_runners(graph, "scope"), SizeIs(1));
  EXPECT_THAT(queue_runners(graph, "other"), IsEmpty());
}

TEST_F(QueueRunnerTest, AllOfACollectionAreStarted) {  // QR-10
  const Output count = counter("var", 3);
  const FIFOQueue queue(root, 10, {kFloat});
  add_queue_runner(graph, QueueRunner(root, queue, {count}));
  const auto session = new_session();
  const QueueRunnerThreads threads = start_queue_runners(session);
  EXPECT_THAT(names_of(threads), ElementsAre("QueueRunnerThread-fifo_queue-CountUpTo:0"));
  join_all(threads);
  EXPECT_EQ(value(*session, counters[0]), 3);
  EXPECT_THAT(start_queue_runners(session, std::nullopt, /*start=*/false), SizeIs(1));
}

TEST_F(QueueRunnerTest, ACollectionWithoutRunnersIsAWarning) {  // QR-10
  const LogRecorder log;
  EXPECT_THAT(start_queue_runners(new_session()), IsEmpty());
  EXPECT_THAT(log.text(), HasSubstr("no queue runners were defined"));
}

TEST_F(QueueRunnerTest, NeedsASession) {  // QR-10
  EXPECT_THAT(error_of([] { start_queue_runners(nullptr); }), HasSubstr("tf.Session"));
  EXPECT_THROW(QueueRunner(root, FIFOQueue(root, 1, {kFloat}), {"op"}).create_threads(nullptr), InvalidArgumentError);
}

TEST_F(QueueRunnerTest, IsWhatItsProtoSays) {  // QR-11
  const FIFOQueue queue(root, 10, {kFloat}, {.name = "queue"});
  const Operation enqueue = ops::no_op(root, "enqueue"), close = ops::no_op(root, "close"),
                  cancel = ops::no_op(root, "cancel");
  const QueueRunner runner(
      root, queue, {enqueue},
      {.close_op = close, .cancel_op = cancel, .queue_closed_exception_types = {Code::kOutOfRange, Code::kCancelled}});
  const QueueRunner read(runner.to_proto());
  EXPECT_EQ(read.name(), "queue");
  EXPECT_THAT(read.enqueue_ops(), ElementsAre("enqueue"));
  EXPECT_EQ(read.close_op(), "close");
  EXPECT_EQ(read.cancel_op(), "cancel");
  EXPECT_THAT(read.queue_closed_exception_types(), ElementsAre(Code::kOutOfRange, Code::kCancelled));
  proto::QueueRunnerDef old = runner.to_proto();
  old.clear_queue_closed_exception_types();
  EXPECT_THAT(QueueRunner(old).queue_closed_exception_types(), ElementsAre(Code::kOutOfRange));
}

TEST_F(QueueRunnerTest, ClosesAndCancelsByDefault) {  // QR-12
  const FIFOQueue queue(root, 10, {kFloat});
  const QueueRunner runner(root, queue, {queue.enqueue(root, {ops::constant(root, 1.f)})});
  EXPECT_FALSE(graph.operation(runner.close_op()).attr<bool>("cancel_pending_enqueues"));
  EXPECT_TRUE(graph.operation(runner.cancel_op()).attr<bool>("cancel_pending_enqueues"));
  EXPECT_THROW(QueueRunner(root, queue, {}), InvalidArgumentError);
  EXPECT_THROW(QueueRunner(root, queue, {"op"}, {.queue_closed_exception_types = {}}), InvalidArgumentError);
}

TEST_F(QueueRunnerTest, ErrorsOfTheCloseAreIgnored) {  // QR-12
  const FIFOQueue queue(root, 10, {kFloat});
  const auto fail = [](const auto&) -> std::vector<Tensor> { throw InternalError("expected"); };
  const Operation bad = ops::host_function(root, {}, {}, fail);
  const Output count = counter("var", 3);
  const QueueRunner runner(root, queue, {count}, {.close_op = bad, .cancel_op = bad});
  Coordinator coord;
  const QueueRunnerThreads threads = runner.create_threads(new_session(), coord, /*start=*/true);
  eventually([&] { return threads[0]->finished(); });
  coord.request_stop();
  coord.join();
}

// An operation that takes no notice of anything but its end.
TEST_F(QueueRunnerTest, AThreadThatWaitsElsewhereIsAStraggler) {  // QR-13
  const auto end = std::make_shared<std::atomic<bool>>(false);
  const auto began = std::make_shared<std::atomic<bool>>(false);
  const auto wait = [end, began](const auto&) -> std::vector<Tensor> {
    *began = true;
    while (!*end) std::this_thread::yield();
    return {};
  };
  QueueRunnerThreads threads;
  {
    Coordinator coord;
    const QueueRunner runner(root, FIFOQueue(root, 10, {kFloat}), {ops::host_function(root, {}, {}, wait, "stuck")});
    threads = runner.create_threads(new_session(), coord, /*start=*/true);
    eventually([&] { return began->load(); });
    coord.request_stop();
    EXPECT_THAT(error_of([&] { coord.join({.stop_grace = Seconds{0.01}}); }),
                HasSubstr("threads still running: QueueRunnerThread-fifo_queue-stuck"));
  }
  *end = true;  // the session, the runner and the coordinator are the thread's alone now
  join_all(threads);
}

TEST_F(QueueRunnerTest, GoesWithAMetaGraph) {
  const FIFOQueue queue(root, 10, {kFloat}, {.name = "queue"});
  add_queue_runner(graph, QueueRunner(root, queue, {queue.enqueue(root, {ops::constant(root, 1.f)})}));
  const proto::MetaGraphDef meta = to_meta_graph_def(graph);
  proto::QueueRunnerDef def;
  ASSERT_TRUE(def.ParseFromString(meta.collection_def().at("queue_runners").bytes_list().value(0)));
  EXPECT_EQ(def.enqueue_op_name(0), "queue_enqueue");
  graph.add_to_collection("queue_runners", std::string("\xff"));
  EXPECT_THROW(queue_runners(graph), DataLossError);
}

}  // namespace
}  // namespace longhaul
