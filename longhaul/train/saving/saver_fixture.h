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
  SaverFixture() {
    session->run(ops::global_variables_initializer(root));
    options = {.graph = &graph, .files = &files, .clock = &clock};
  }
  void set(const Variable& variable, float value) {
    session->run(variable.initializer(), {{variable.initial_value(), Tensor::scalar(value)}});
  }
  float get(const Variable& variable) { return session->run(variable).item<float>(); }
  CheckpointState state() { return read_checkpoint_state(files, directory.path()).state; }
  bool exists(const std::string& prefix) { return checkpoint_exists(files, prefix); }

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
