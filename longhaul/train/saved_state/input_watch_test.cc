// What checkpoints tell of the inputs of a training.
#include "longhaul/train/saved_state/input_watch.h"

#include "longhaul/ops/input/data_position.h"
#include "longhaul/train/saved_state/environment_record.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<DataLoader> loader_of(int64_t examples, const DataLoaderOptions& options) {
  return std::make_shared<DataLoader>(tensor_dataset({Tensor::of(std::vector<float>(examples, 1.0f))}), options);
}

// A training that reads its batches from a loader.
struct Training {
  explicit Training(int64_t examples = 6,
                    const DataLoaderOptions& loader = {.batch_size = 2, .seed = 7, .num_threads = 0})
      : input(ops::load_batch(root, loader_of(examples, loader), "batches")) {
    session = make_scripted_session(graph);
    session->run(ops::global_variables_initializer(root));
  }

  Graph graph;
  Scope root{graph};
  Variable step = ops::create_global_step(root);
  Variable weights = ops::variable(root, "weights", Tensor::of<float>({0, 0}));
  ops::LoadedBatch input;
  Operation train = ops::group(root, {ops::assign_add(root, weights, input.components[0]).op(),
                                      ops::assign_add(root, step, ops::constant(root, int64_t{1})).op()});
  std::unique_ptr<testing::ScriptedSession> session;
};

class InputWatchTest : public ::testing::Test {
 protected:
  // What is logged when all is saved after so many runs of `step`.
  std::string warning_after(int runs, const std::vector<Operation>& step) {
    for (int i = 0; i < runs; ++i) {
      for (const Operation& each : step) training.session->run(each);
    }
    const LogRecorder log;
    saver.save(*training.session, directory.file("model"), training.step);
    return log.text(LogLevel::kWarning);
  }

  testing::TemporaryDirectory directory;
  Training training;
  const Operation other_step =
      ops::assign_add(training.root, training.step, ops::constant(training.root, int64_t{1})).op();
  Saver saver{{.graph = &training.graph}};
};

TEST_F(InputWatchTest, AForgottenAdvanceIsNamedOnce) {
  EXPECT_EQ(warning_after(0, {}), "");
  EXPECT_THAT(warning_after(20, {training.train}),
              AllOf(HasSubstr("steps 1 to 20 all took the same batch of input batches"),
                    HasSubstr("position, which is still 0"), HasSubstr("input.advance")));
  EXPECT_EQ(warning_after(20, {training.train}), "");
}

TEST_F(InputWatchTest, OneThatIsRunIsNone) {
  EXPECT_EQ(warning_after(0, {}), "");
  EXPECT_EQ(warning_after(20, {training.train, training.input.advance}), "");
}

TEST_F(InputWatchTest, ABatchThatIsTakenForSomeStepsIsNone) {
  EXPECT_EQ(warning_after(0, {}), "");
  EXPECT_EQ(warning_after(4, {training.train}), "") << "on purpose";
  EXPECT_EQ(warning_after(1, {training.input.advance}), "");
  EXPECT_EQ(warning_after(4, {training.train}), "");
}

TEST_F(InputWatchTest, AnInputThatOnlyAnEvaluationReadsIsNone) {
  EXPECT_EQ(warning_after(0, {}), "");
  for (int i = 0; i < 5; ++i) {
    training.session->run(training.input.components[0]);
    EXPECT_EQ(warning_after(20, {other_step}), "");
  }
}

TEST_F(InputWatchTest, OneThatIsForgottenLaterIsNamedToo) {
  EXPECT_EQ(warning_after(3, {training.train, training.input.advance}), "");
  EXPECT_EQ(warning_after(9, {training.train}), "");
  EXPECT_THAT(warning_after(1, {training.train}), HasSubstr("steps 4 to 13 all took the same batch"));
}

TEST_F(InputWatchTest, ARestoreBeginsAnew) {
  EXPECT_EQ(warning_after(0, {}), "");
  const std::string first = saver.last_checkpoints().at(0);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(warning_after(6, {training.train}), "") << "steps that were lost do not count";
    saver.restore(*training.session, first);
    warning_after(0, {});
  }
}

// A training that is restarted with another input.
class OtherInput : public ::testing::Test {
 protected:
  // What is logged when `now` restores what `then` has saved.
  std::string warning_of(Training&& then, Training&& now) {
    Saver saver({.graph = &then.graph}), restorer({.graph = &now.graph});
    const std::string saved = saver.save(*then.session, directory.file("model"), then.step);
    const LogRecorder log;
    restorer.restore(*now.session, saved);
    return log.text(LogLevel::kWarning);
  }

  testing::TemporaryDirectory directory;
};

TEST_F(OtherInput, IsNamedByWhatIsNotTheSame) {
  const DataLoaderOptions options{.batch_size = 2, .seed = 7, .num_threads = 0};
  DataLoaderOptions other = options;
  EXPECT_EQ(warning_of(Training(), Training()), "");
  other.seed = 8;
  EXPECT_THAT(warning_of(Training(), Training(6, other)),
              AllOf(HasSubstr("it was saved with input batches seed 7, this run has 8"),
                    HasSubstr("now means other examples"), Not(HasSubstr("another graph")), Not(HasSubstr("shuffle"))));
  other = options;
  other.shuffle = false;
  EXPECT_THAT(warning_of(Training(), Training(6, other)), HasSubstr("input batches shuffle true, this run has false"));
  EXPECT_THAT(warning_of(Training(), Training(8, options)), HasSubstr("input batches num_examples 6, this run has 8"));
}

TEST_F(OtherInput, AnotherBatchSizeGoesOnWithTheSameExamples) {
  EXPECT_THAT(warning_of(Training(6, {.batch_size = 2, .seed = 7, .num_replicas = 1, .num_threads = 0}),
                         Training(6, {.batch_size = 2, .seed = 7, .num_replicas = 3, .num_threads = 0})),
              AllOf(HasSubstr("input batches num_replicas 1, this run has 3"), Not(HasSubstr("other examples"))));
}

TEST_F(OtherInput, OfAnOlderCheckpointNothingIsSaid) {
  Training then, now(6, {.batch_size = 2, .seed = 8, .num_threads = 0});
  Saver saver({.graph = &then.graph}), restorer({.graph = &now.graph});
  const std::string saved = saver.save(*then.session, directory.file("model"), then.step);
  proto::MetaGraphDef meta_graph;
  ASSERT_TRUE(meta_graph.ParseFromString(read_file(FileSystem::real(), meta_graph_filename(saved))));
  Environment facts = recorded_environment(meta_graph).value();
  EXPECT_EQ(std::erase_if(facts, [](const auto& fact) { return ops::is_input_fact(fact.first); }), 5u);
  record_environment(facts, &meta_graph);
  for (auto& node : *meta_graph.mutable_graph_def()->mutable_node()) {
    for (const char* fact : ops::kInputFacts) node.mutable_attr()->erase(ops::input_fact_attr(fact));
  }
  write_file_atomically(FileSystem::real(), meta_graph_filename(saved), meta_graph.SerializeAsString());
  const LogRecorder log;
  restorer.restore(*now.session, saved);
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
}

}  // namespace
}  // namespace longhaul
