#include <atomic>
#include <set>

#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::SizeIs;

class ElementSourceTest : public ::testing::Test {
 protected:
  Graph graph;
  Scope root{graph};
};

TEST_F(ElementSourceTest, ACallableFeedsAQueue) {
  std::atomic<int64_t> next{0};
  const FIFOQueue queue(root, 2, {kInt64, kString}, {.shapes = {Shape{}, Shape{}}});
  enqueue_from(root, queue, [&]() -> std::optional<std::vector<Tensor>> {
    const int64_t n = next++;
    if (n >= 5) return std::nullopt;
    return std::vector<Tensor>{Tensor::scalar(n), Tensor::scalar("n")};
  });
  const std::vector<Output> batch = queue.dequeue_up_to(root, 3);
  const std::shared_ptr<Session> session = make_scripted_session(graph);
  Coordinator coord;
  start_queue_runners(session, coord);
  EXPECT_TRUE(identical(session->run(batch[0]), Tensor::of<int64_t>({0, 1, 2})));
  EXPECT_TRUE(identical(session->run(batch[0]), Tensor::of<int64_t>({3, 4})));
  EXPECT_THROW(session->run(batch[0]), OutOfRangeError);
  coord.request_stop();
  coord.join();
}

TEST_F(ElementSourceTest, SeveralThreadsCanCallASource) {
  std::atomic<int64_t> next{0};
  const FIFOQueue queue(root, -1, {kInt64}, {.shapes = {Shape{}}});
  const auto source = [&]() -> std::optional<std::vector<Tensor>> {
    const int64_t n = next++;
    if (n >= 50) throw OutOfRangeError("no more");
    return std::vector<Tensor>{Tensor::scalar(n)};
  };
  const QueueRunner runner = enqueue_from(root, queue, source, 3);
  EXPECT_THAT(runner.enqueue_ops(), SizeIs(3));
  const Output all = queue.dequeue_many(root, 50)[0];
  const std::shared_ptr<Session> session = make_scripted_session(graph);
  const QueueRunnerThreads threads = start_queue_runners(session);
  const Tensor values = session->run(all);
  const std::set<int64_t> seen(values.flat<int64_t>().begin(), values.flat<int64_t>().end());
  EXPECT_THAT(seen, SizeIs(50));
  for (const auto& thread : threads) thread->join();
}

TEST_F(ElementSourceTest, AWrongElementIsAnErrorThatNamesTheQueue) {
  const FIFOQueue queue(root, -1, {kInt64}, {.shapes = {Shape{}}});
  enqueue_from(root, queue, [] { return std::optional(std::vector<Tensor>{Tensor::of<int64_t>({1, 2})}); });
  const std::shared_ptr<Session> session = make_scripted_session(graph);
  Coordinator coord;
  start_queue_runners(session, coord);
  EXPECT_THAT(error_of([&] { coord.join(); }), ::testing::HasSubstr("FIFOQueue 'fifo_queue': Shape mismatch"));
  EXPECT_THROW(enqueue_from(root, queue, [] { return std::nullopt; }, 0), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
