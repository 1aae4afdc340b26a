// What the last checkpoint of a bound module has: its tensors are the program's, which may write to them at any time.
#include "longhaul/binding/torch_fixture.h"
#include "longhaul/train/checkpointing/save_once.h"

namespace longhaul {
namespace {

class TorchLastSave : public ::testing::Test {
 protected:
  // Whether a save writes a checkpoint.
  bool writes(BoundProgram& program) {
    bool wrote = false;
    save_once({.saver = *program.saver,
               .attempts = attempts,
               .save_path = path,
               .global_step = program.training.global_step,
               .before_write = [&](auto) { wrote = true; }},
              *program.session);
    return wrote;
  }
  static at::Tensor first_weight(BoundProgram& program) { return program.net->parameters()[0].data().view(-1)[0]; }

  const testing::TemporaryDirectory directory;
  const std::string path = directory.file("model");
  SaveAttempts attempts;
};

TEST_F(TorchLastSave, IsLeftOutOnlyWhereNothingHasChanged) {
  BoundProgram program(default_adam);
  program.initialize().train(3);
  EXPECT_TRUE(writes(program));
  EXPECT_FALSE(writes(program));
  program.train(1);
  EXPECT_TRUE(writes(program));
}

TEST_F(TorchLastSave, HasWhatWasWrittenBehindTheSessionsBack) {
  BoundProgram program;
  program.initialize().train(3);
  writes(program);
  first_weight(program).fill_(42);
  EXPECT_TRUE(writes(program));
  BoundProgram resumed;
  resumed.restore(path + "-3");
  EXPECT_EQ(first_weight(resumed).item<float>(), 42);
  EXPECT_FALSE(writes(resumed)) << "a restart that makes no step";
}

TEST_F(TorchLastSave, HasTheAveragesThatWereSwappedIn) {
  BoundProgram program;
  program.initialize().train(3);
  writes(program);
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : program.net->parameters()) parameter.copy_(parameter * 0.5);
  }
  EXPECT_TRUE(writes(program));
  BoundProgram resumed;
  resumed.restore(path + "-3");
  expect_same_state(program, resumed);
}

}  // namespace
}  // namespace longhaul
