#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {

SupervisorFixture::SupervisorFixture() {
  options = {.graph = &graph, .logdir = directory.path(), .clock = &clock};
  install_session_factory([this](const std::string& master, Graph& made_for, const SessionOptions& config) {
    auto session = make_scripted_session(made_for, server);
    last_session = session.get();
    last_master = master;
    last_config = config;
    return session;
  });
}

SupervisorFixture::~SupervisorFixture() {
  install_session_factory(nullptr);
}

void SupervisorFixture::add_step(int64_t start) {
  const Output initial = ops::constant(root, Tensor::scalar(start), "start");
  step = ops::variable(root, "global_step", initial, {.trainable = false});
  train = ops::assign_add(root, step, ops::constant(root, int64_t{1})).op();
}

void SupervisorFixture::restart() {
  server = std::make_shared<testing::ScriptedSession::Variables>();
}

void SupervisorFixture::wait_for_snapshots(int count) {
  eventually([&] { return last_session->snapshot_runs() >= count; });
}

bool SupervisorFixture::exists(const std::string& prefix) {
  return checkpoint_exists(FileSystem::real(), prefix);
}

std::vector<proto::Event> SupervisorFixture::events() {
  return events_in_directory(directory.path());
}

std::vector<std::string> SupervisorFixture::described_events() {
  return describe(events());
}

}  // namespace longhaul
