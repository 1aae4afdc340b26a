#pragma once

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A graph with two variables and a step counter, initialised in a session, and where to save them.
class SaverFixture : public ::testing::Test {
 protected:
  SaverFixture();
  ~SaverFixture() override;

  void set(const Variable& variable, float value);
  float get(const Variable& variable);
  CheckpointState state();
  bool exists(const std::string& prefix);

  testing::TemporaryDirectory directory;
  std::string path = directory.file("model");
  testing::FaultyFileSystem files;
  testing::FakeClock clock;
  Graph graph;
  Scope root{graph};
  Variable b = ops::variable(root, "b", Tensor::scalar(2.0f));
  Variable a = ops::variable(root, "a", Tensor::scalar(1.0f));
  Variable step = ops::create_global_step(root);
  std::unique_ptr<testing::ScriptedSession> session = make_scripted_session(graph);
  SaverOptions options;
};

}  // namespace longhaul
