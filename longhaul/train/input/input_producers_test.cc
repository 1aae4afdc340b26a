#include "longhaul/train/input/input_producers.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include "longhaul/train/input/pipeline_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class InputProducers : public PipelineTest {};

TEST_F(InputProducers, MatchingFilenamesAreKeptFromTheLocalInit) {  // IN-1
  testing::TemporaryDirectory directory;
  for (const char* name : {"a.txt", "ab.txt", "b.txt", "other"}) std::ofstream(directory.path() + "/" + name) << name;
  const std::string base = directory.path() + "/";
  const Output all = match_filenames_once(root_, {base + "*.txt"}, "all");
  const Output one_letter = match_filenames_once(root_, {base + "?.txt"}, "one_letter");
  const Output plain = match_filenames_once(root_, {base + "other", base + "b.txt"}, "plain");
  start();
  std::ofstream(base + "c.txt") << "too late";
  EXPECT_THAT(take<std::string>(all), UnorderedElementsAre(base + "a.txt", base + "ab.txt", base + "b.txt"));
  EXPECT_THAT(take<std::string>(one_letter), UnorderedElementsAre(base + "a.txt", base + "b.txt"));
  EXPECT_THAT(take<std::string>(plain), UnorderedElementsAre(base + "other", base + "b.txt"));
}

TEST_F(InputProducers, WithoutALimitEpochsGoOnForEver) {  // IN-2
  const Output forever = limit_epochs(root_, strings({"again"}), std::nullopt);
  start();
  for (int i = 0; i < 100; ++i) EXPECT_THAT(take<std::string>(forever), ElementsAre("again"));
}

TEST_F(InputProducers, LimitedEpochsEndWithOutOfRange) {  // IN-2
  const Output twice = limit_epochs(root_, ops::constant(root_, 1.5f), 2);
  start();
  EXPECT_THAT(take_all<float>(twice), ElementsAre(1.5f, 1.5f));
}

TEST_F(InputProducers, EpochsArePositiveAndCountedInALocalVariable) {  // IN-2
  const Output value = ops::constant(root_, 1.0f);
  EXPECT_THROW(limit_epochs(root_, value, 0), InvalidArgumentError);
  EXPECT_THROW(limit_epochs(root_, value, -1), InvalidArgumentError);
  limit_epochs(root_, value, 3);
  ASSERT_EQ(ops::local_variables(graph_).size(), 1u);
  EXPECT_TRUE(ops::global_variables(graph_).empty());
}

TEST_F(InputProducers, RowsComeInOrderEachEpoch) {  // IN-3
  const Output input = ops::constant(root_, Tensor::of<int64_t>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output row = input_producer(root_, input, {.num_epochs = 2, .shuffle = false}).dequeue(root_)[0];
  EXPECT_EQ(row.shape(), (Shape{2}));
  start();
  using Row = std::vector<int64_t>;
  EXPECT_THAT(take_all_batches<int64_t>(row),
              ElementsAre(Row{1, 2}, Row{3, 4}, Row{5, 6}, Row{1, 2}, Row{3, 4}, Row{5, 6}));
  coord_.request_stop();
  coord_.join({.stop_grace = Seconds(20)});  // the runner's threads have ended
}

TEST_F(InputProducers, RowsNeedAKnownShape) {  // IN-3
  const Output unknown = ops::placeholder(root_, kFloat, {-1, -1});
  EXPECT_THAT(error_of([&] { input_producer(root_, unknown); }), HasSubstr("fully defined shape"));
  EXPECT_THAT(error_of([&] { input_producer(root_, ops::placeholder(root_, kFloat)); }),
              HasSubstr("fully defined shape"));
  EXPECT_NO_THROW(input_producer(root_, unknown, {.element_shape = Shape{4}}));
  EXPECT_THROW(input_producer(root_, ops::constant(root_, Tensor(kFloat, {3, 2})), {.element_shape = Shape{4}}),
               InvalidArgumentError);
}

TEST_F(InputProducers, ElementShapeStandsInAndTheThreadsEndWithTheInput) {  // IN-3
  const Output rows = ops::constant(root_, Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4}));
  const Output unknown = ops::placeholder_with_default(root_, rows, Shape::unknown_rank());
  const FIFOQueue queue =
      input_producer(root_, unknown, {.num_epochs = 2, .shuffle = false, .element_shape = Shape{2}});
  const Output row = queue.dequeue(root_)[0];
  EXPECT_EQ(row.shape(), (Shape{2}));
  const Operation init = ops::local_variables_initializer(root_);
  session_ = make_scripted_session(graph_);
  session_->run(init);
  const QueueRunnerThreads threads = start_queue_runners(session_);  // nobody requests a stop
  using Row = std::vector<int64_t>;
  EXPECT_THAT(take_all_batches<int64_t>(row), ElementsAre(Row{1, 2}, Row{3, 4}, Row{1, 2}, Row{3, 4}));
  for (const auto& thread : threads) thread->join();
  for (const auto& thread : threads) EXPECT_TRUE(thread->finished());
}

TEST_F(InputProducers, NoStringsAreRefusedAtOnce) {  // IN-4
  EXPECT_THAT(error_of([&] { string_input_producer(root_, std::vector<std::string>{}); }),
              HasSubstr("requires a non-null input tensor"));
}

TEST_F(InputProducers, AnEmptyTensorOfStringsEndsTheRunner) {  // IN-4
  const FIFOQueue queue = string_input_producer(root_, strings({}), {.num_epochs = 1});
  const Output next = queue.dequeue(root_)[0];
  const Operation init = ops::local_variables_initializer(root_);
  session_ = make_scripted_session(graph_);
  session_->run(init);
  const QueueRunner runner = queue_runners(graph_)[0];
  for (const auto& thread : runner.create_threads(session_, std::nullopt, /*start=*/true)) thread->join();
  ASSERT_EQ(runner.exceptions_raised().size(), 1u);
  EXPECT_THAT(message_of(runner.exceptions_raised()[0]), HasSubstr("requires a non-null input tensor"));
  EXPECT_THROW(take<std::string>(next), OutOfRangeError);
}

TEST_F(InputProducers, AShuffleStaysWithinItsEpochAndFavoursNoOrder) {  // IN-4
  const int epochs = 600;
  const FIFOQueue queue =
      string_input_producer(root_, std::vector<std::string>{"a", "b", "c"}, {.num_epochs = epochs, .seed = 271828});
  const Output next = queue.dequeue(root_)[0];
  start();
  std::map<std::string, int> orders;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::string order;
    for (int i = 0; i < 3; ++i) order += take<std::string>(next)[0];
    ++orders[order];
  }
  EXPECT_THROW(take<std::string>(next), OutOfRangeError);
  ASSERT_EQ(orders.size(), 6u);  // all of them are permutations of a, b, c
  for (const auto& [order, count] : orders) {
    EXPECT_EQ(std::set<char>(order.begin(), order.end()), (std::set<char>{'a', 'b', 'c'}));
    EXPECT_NEAR(count, epochs / 6.0, 0.4 * epochs / 6.0) << order;
  }
}

TEST_F(InputProducers, ASeedDecidesTheOrder) {  // IN-4
  const auto order_of = [](int64_t seed) {
    Graph graph;
    const Scope root(graph);
    const Output next = range_input_producer(root, 50, {.num_epochs = 1, .seed = seed}).dequeue_many(root, 50)[0];
    const Operation init = ops::local_variables_initializer(root);
    const std::shared_ptr<Session> session = make_scripted_session(graph);
    session->run(init);
    const Coordinator coord;
    start_queue_runners(session, coord);
    const Tensor order = session->run(next, {}, {.timeout = Seconds(20)});
    coord.request_stop();
    coord.join({.stop_grace = Seconds(20)});
    return std::vector<int32_t>(order.flat<int32_t>().begin(), order.flat<int32_t>().end());
  };
  EXPECT_EQ(order_of(7), order_of(7));
  EXPECT_NE(order_of(7), order_of(8));
}

TEST_F(InputProducers, TheSharedNameIsTheQueues) {  // IN-4
  const FIFOQueue queue =
      string_input_producer(root_, std::vector<std::string>{"a"}, {.shuffle = false, .shared_name = "SHARED"});
  EXPECT_EQ(queue.handle().op().attr<std::string>("shared_name"), "SHARED");
}

TEST_F(InputProducers, OperationsCanBeAddedWhileRunnersRun) {  // IN-4
  const FIFOQueue queue = string_input_producer(root_, std::vector<std::string>{"a", "b"}, {.shuffle = false});
  start();
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(take<std::string>(queue.dequeue(root_)[0]), ElementsAre(i % 2 == 0 ? "a" : "b"));
  }
}

TEST_F(InputProducers, ARangeIsCountedEachEpoch) {  // IN-5
  const Output next = range_input_producer(root_, 3, {.num_epochs = 2, .shuffle = false}).dequeue(root_)[0];
  start();
  EXPECT_THAT(take_all<int32_t>(next), ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST_F(InputProducers, AShuffledRangeHasEachNumberOnceInAnEpoch) {  // IN-5
  const Output next = range_input_producer(root_, 5, {.num_epochs = 1, .seed = 1}).dequeue(root_)[0];
  start();
  EXPECT_THAT(take_all<int32_t>(next), UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST_F(InputProducers, SlicesOfSeveralTensorsStayTogether) {  // IN-5
  const auto row = slice_input_producer(
      root_, {strings({"Alpha", "Beta", "Delta"}), ops::constant(root_, Tensor::of<int64_t>({2, 3, 5}))},
      {.num_epochs = 2, .seed = 271828});
  start();
  std::multiset<std::pair<std::string, int64_t>> seen;
  try {
    while (true) {
      const auto values = session_->run({Fetch(row[0]), Fetch(row[1])}, {}, {.timeout = Seconds(20)});
      seen.emplace(values[0].item<std::string>(), values[1].item<int64_t>());
    }
  } catch (const OutOfRangeError&) {
  }
  EXPECT_THAT(seen, ElementsAre(std::pair("Alpha", 2), std::pair("Alpha", 2), std::pair("Beta", 3),
                                std::pair("Beta", 3), std::pair("Delta", 5), std::pair("Delta", 5)));
}

TEST_F(InputProducers, SlicesNeedTensorsOfEquallyManyRows) {
  EXPECT_THROW(slice_input_producer(root_, {}), InvalidArgumentError);
  EXPECT_THROW(slice_input_producer(root_, {strings({"a"}), strings({"a", "b"})}), InvalidArgumentError);
  EXPECT_THROW(slice_input_producer(root_, {ops::placeholder(root_, kFloat)}), InvalidArgumentError);
  const Output too_many = ops::placeholder(root_, kFloat, {int64_t{1} << 32}, "too_many");
  EXPECT_THAT(error_of([&] { slice_input_producer(root_, {too_many}); }), HasSubstr("too_many:0 has 4294967296 rows"));
}

TEST_F(InputProducers, TheQueuesFillIsASummary) {  // IN-6
  const FIFOQueue queue = range_input_producer(root_, 3, {.shuffle = false, .name = "rows"});
  EXPECT_EQ(queue.handle().op().attr<int64_t>("capacity"), 32);
  const auto summaries = graph_.collection_of<Output>(collections::kSummaries);
  ASSERT_EQ(summaries.size(), 1u);
  EXPECT_EQ(summaries[0].op().inputs()[0].op().attr<Tensor>("value").item<std::string>(), "rows/fraction_of_32_full");
  session_ = make_scripted_session(graph_);
  const Output fraction = summaries[0].op().inputs()[1];
  EXPECT_EQ(take<float>(fraction)[0], 0.0f);
  session_->run(queue.enqueue_many(root_, {ops::constant(root_, Tensor::of<int32_t>({1, 2, 3, 4, 5, 6, 7, 8}))}));
  EXPECT_EQ(take<float>(fraction)[0], 0.25f);
}

}  // namespace
}  // namespace longhaul
