#pragma once

#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/sessions/session_manager.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A chief's model: v, and w, a local variable that starts as v is.
class SessionManagerTest : public ::testing::Test {
 protected:
  SessionManagerTest() {
    options.graph = &graph;
    options.ready_op = ops::report_uninitialized_variables(root, {v.info(), w.info()});
    options.local_init_op = w.initializer();
    options.coordinator = Coordinator({.clock = &clock});
    options.session_factory = [this](const std::string&, Graph& made_for, const SessionOptions&) {
      auto session = make_scripted_session(made_for, server);
      sessions.push_back(session.get());
      return session;
    };
    prepare.init_op = v.initializer();
    prepare.saver = &saver;
  }
  SessionManager manager() { return SessionManager(options); }
  float value(Session& session, const Variable& variable) { return session.run(variable).item<float>(); }

  // A process that had v = `value` and saved it.
  std::string save(float value, int64_t step, const SaveOptions& save_options = {}) {
    auto other = make_scripted_session(graph);
    other->run(v.initializer(), {{v.initial_value(), Tensor::scalar(value)}});
    return saver.save(*other, directory.file("model"), step, save_options);
  }
  // The same, killed before it could write the state file.
  std::string saver_with_no_state(float value, int64_t step) { return save(value, step, {.write_state = false}); }
  void damage(const std::string& prefix) {
    const std::string path = prefix + ".data-00000-of-00001";
    std::string bytes = read_file(FileSystem::real(), path);
    bytes[1] = static_cast<char>(bytes[1] ^ 4);
    write_file_atomically(FileSystem::real(), path, bytes);
  }
  // A restarted process, for which `directory` is the place to recover from.
  void restart() {
    server = std::make_shared<testing::ScriptedSession::Variables>();
    prepare.checkpoint_dir = directory.path();
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock{testing::FakeClock::Waits::kPassTime};
  std::shared_ptr<testing::ScriptedSession::Variables> server = std::make_shared<testing::ScriptedSession::Variables>();
  std::vector<testing::ScriptedSession*> sessions;
  Graph graph;
  Scope root{graph};
  Variable v = ops::variable(root, "v", Tensor::scalar(2.0f));
  Variable w = ops::local_variable(root, "w", v);
  Saver saver{{.graph = &graph}};
  const ThreadsEnd threads_end;
  SessionManagerOptions options;
  PrepareOptions prepare;
};

}  // namespace longhaul
