#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Supervisors of graphs whose input comes through queues.
class SupervisorQueuesTest : public SupervisorFixture {
 protected:
  // A queue that a runner fills with 0, 1, ..., as many as said.
  FIFOQueue numbers(int64_t count, const std::string& name = "numbers") {
    const FIFOQueue queue(root, 2, {kInt64}, {.shapes = {Shape{}}, .name = name});
    enqueue_from(root, queue, [count, next = int64_t{0}]() mutable -> std::optional<std::vector<Tensor>> {
      if (next == count) return std::nullopt;
      return std::vector<Tensor>{Tensor::scalar(next++)};
    });
    return queue;
  }
  // Another, filled from the first.
  RandomShuffleQueue shuffled(const FIFOQueue& from) {
    const RandomShuffleQueue queue(root, 6, 4, {kInt64}, {.shapes = {Shape{}}});
    add_queue_runner(graph, QueueRunner(root, queue, {queue.enqueue(root, from.dequeue(root))}));
    return queue;
  }
  // Takes all there is, in a managed session; the sum.
  int64_t sum_of(const Output& element) {
    Supervisor sv(options);
    int64_t sum = 0;
    sv.managed_session([&](Session& session) {
      while (!sv.should_stop()) sum += session.run(element).item<int64_t>();
    });
    return sum;
  }
};

TEST_F(SupervisorQueuesTest, WithoutRunnersThereAreNoThreads) {  // SV-54
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  EXPECT_THAT(sv.start_queue_runners(session), IsEmpty());
  sv.stop();
}

TEST_F(SupervisorQueuesTest, StartsTheRunnersOfTheCollection) {  // SV-54, SV-26
  const LogRecorder log;
  const FIFOQueue queue = numbers(1000);
  const Output element = queue.dequeue(root)[0];
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session();
  EXPECT_THAT(log.text(), HasSubstr("Starting queue runners."));
  EXPECT_EQ(session->run(element).item<int64_t>(), 0);
  EXPECT_THAT(sv.start_queue_runners(session), IsEmpty()) << "they run already";
  sv.stop();
}

TEST_F(SupervisorQueuesTest, StartsRunnersOnlyWithTheServices) {  // SV-26
  const FIFOQueue queue = numbers(3);
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  const QueueRunnerThreads threads = sv.start_queue_runners(session, queue_runners(graph));
  EXPECT_THAT(threads, SizeIs(2)) << "one that fills, and one that closes on a stop";
  sv.stop();
  for (const auto& thread : threads) EXPECT_TRUE(thread->finished());
}

TEST_F(SupervisorQueuesTest, TheEndOfTheInputEndsAManagedSession) {  // SV-68
  EXPECT_EQ(sum_of(numbers(10).dequeue(root)[0]), 45);
}

TEST_F(SupervisorQueuesTest, TheEndOfTheInputGoesThroughTwoQueues) {  // SV-68
  EXPECT_EQ(sum_of(shuffled(numbers(10)).dequeue_many(root, 1)[0]), 45);
}

TEST_F(SupervisorQueuesTest, AnErrorOfTheBodyOutranksWhatTheQueuesSay) {  // SV-68
  const Output element = shuffled(numbers(1000)).dequeue(root)[0];
  Supervisor sv(options);
  const auto fail_at_step_3 = [&](Session& session) {
    for (int step = 0; !sv.should_stop(); ++step) {
      if (step == 3) throw FailedPreconditionError("fail at step 3");
      session.run(element);
    }
  };
  EXPECT_EQ(error_of([&] { sv.managed_session(fail_at_step_3); }), "fail at step 3");
}

}  // namespace
}  // namespace longhaul
