// A hook's own state in the checkpoints of a training that is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "longhaul/ops/external_variable.h"
#include "longhaul/ops/ops.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/monitored/monitored_training_session.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;

// Validates at every second step: remembers at which step it did so last, and how often it has. Its state is a variable
// of the graph, so that checkpoints have it.
class Validation : public SessionRunHook {
 public:
  enum class When { kAfterTheRun, kBeforeTheNext };
  explicit Validation(When when = When::kAfterTheRun) : when_(when) {}

  void begin(Graph& graph) override {
    step_ = *ops::get_global_step(graph);
    ops::external_variable(Scope(graph), "validation",
                           {.dtype = kInt64,
                            .shape = {2},
                            .read = [this] { return Tensor::of<int64_t>({last_, count_}); },
                            .assign =
                                [this](const Tensor& value) {
                                  last_ = value.flat<int64_t>()[0];
                                  count_ = value.flat<int64_t>()[1];
                                },
                            .initial = [] { return Tensor::of<int64_t>({0, 0}); }});
  }
  const SessionRunArgs* before_run(SessionRunContext& context) override {
    if (when_ == When::kBeforeTheNext) validate_if_due(context.session());
    return nullptr;
  }
  void after_run(SessionRunContext& context, const SessionRunValues&) override {
    if (when_ == When::kAfterTheRun) validate_if_due(context.session());
  }
  int64_t count() const { return count_; }

 private:
  void validate_if_due(Session& session) {
    const auto step = session.run(step_).item<int64_t>();
    if (step % 2 != 0 || step == last_) return;
    last_ = step;
    ++count_;
  }

  const When when_;
  Output step_;
  int64_t last_ = 0, count_ = 0;
};

class HookState : public ::testing::Test {
 protected:
  // A process that makes steps until `steps` are made in all, and dies, or comes to its end. Its checkpoints are of
  // every second step. The number of validations.
  int64_t run(int steps, bool dies, bool before_the_saver, Validation::When when) {
    const auto hook = std::make_shared<Validation>(when);
    Graph graph;
    Scope root(graph);
    const Variable step = ops::create_global_step(root);
    const Operation train = ops::assign_add(root, step, ops::constant(root, int64_t{1})).op();
    MonitoredTrainingSessionOptions options{.graph = &graph,
                                            .checkpoint_dir = directory.path(),
                                            .save_checkpoint_steps = int64_t{2},
                                            .save_summaries_steps = int64_t{0},
                                            .log_step_count_steps = 0};
    (before_the_saver ? options.chief_only_hooks : options.hooks).push_back(hook);
    try {
      monitored_training_session(options, [&](MonitoredSession& session) {
        int64_t now = 0;
        session.run_step_fn([&](StepContext& context) { now = context.session().run(step).item<int64_t>(); });
        for (; now < steps; ++now) session.run(train);
        if (dies) throw InternalError("the kill");
      });
    } catch (const InternalError&) {
    }
    return hook->count();
  }
  // Killed twice, right after a checkpoint that was due together with a validation.
  int64_t run_with_kills(bool before_the_saver, Validation::When when = Validation::When::kAfterTheRun) {
    for (const int steps : {2, 4}) run(steps, /*dies=*/true, before_the_saver, when);
    return run(9, /*dies=*/false, before_the_saver, when);
  }

  testing::TemporaryDirectory directory;
};

TEST_F(HookState, OfOneThatComesBeforeTheSaverIsExact) {
  EXPECT_EQ(run_with_kills(/*before_the_saver=*/true), 4);
}

TEST_F(HookState, OfWorkThatIsDoneBeforeTheNextRunIsExact) {
  EXPECT_EQ(run_with_kills(/*before_the_saver=*/false, Validation::When::kBeforeTheNext), 4);
}

// TensorFlow's order of the hooks: the saver's turn comes before those of `hooks`.
TEST_F(HookState, OfOneThatComesAfterTheSaverIsBehind) {  // MT-6
  EXPECT_LT(run_with_kills(/*before_the_saver=*/false), 4);
}

}  // namespace
}  // namespace longhaul
