#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {

SaverFixture::SaverFixture() {
  session->run(ops::global_variables_initializer(root));
  options = {.graph = &graph, .files = &files, .clock = &clock};
}

SaverFixture::~SaverFixture() = default;

void SaverFixture::set(const Variable& variable, float value) {
  session->run(variable.initializer(), {{variable.initial_value(), Tensor::scalar(value)}});
}

float SaverFixture::get(const Variable& variable) {
  return session->run(variable).item<float>();
}

CheckpointState SaverFixture::state() {
  return read_checkpoint_state(files, directory.path()).state;
}

bool SaverFixture::exists(const std::string& prefix) {
  return checkpoint_exists(files, prefix);
}

}  // namespace longhaul
