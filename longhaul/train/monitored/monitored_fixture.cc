#include "longhaul/train/monitored/monitored_fixture.h"

namespace longhaul {

RecordingHook::RecordingHook(std::vector<std::string>* calls, std::string name)
    : calls_(calls), name_(std::move(name)) {}

RecordingHook::~RecordingHook() = default;

void RecordingHook::begin(Graph& graph) {
  note("begin");
  if (on_begin) on_begin(graph);
}

void RecordingHook::after_create_session(Session& session, const Coordinator& coordinator) {
  note("after_create_session");
  coord = coordinator;
  if (on_create) on_create(session);
}

const SessionRunArgs* RecordingHook::before_run(SessionRunContext& context) {
  note("before_run");
  if (on_before) on_before(context);
  return wants ? &*wants : nullptr;
}

void RecordingHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  note("after_run");
  results.assign(values.results.begin(), values.results.end());
  if (on_after) on_after(context, values);
}

void RecordingHook::end(Session& session) {
  note("end");
  if (on_end) on_end(session);
}

void RecordingHook::note(const char* call) {
  if (calls_ != nullptr) calls_->push_back(name_ + call);
}

MonitoredFixture::MonitoredFixture() {
  install_session_factory([this](const std::string&, Graph& made_for, const SessionOptions&) {
    if (on_session) on_session();
    ++sessions;
    auto session = make_scripted_session(made_for);
    last_session = session.get();
    return session;
  });
  options.session_creator = std::make_shared<ChiefSessionCreator>(ChiefSessionCreatorOptions{
      .graph = &graph, .scaffold = scaffold, .checkpoint_dir = directory.path(), .coordinator = coordinator});
  options.restart.backoff = Seconds{0};
  options.coordinator = coordinator;
}

MonitoredFixture::~MonitoredFixture() {
  install_session_factory(nullptr);
}

std::shared_ptr<RecordingHook> MonitoredFixture::add_hook(const std::string& name) {
  auto hook = std::make_shared<RecordingHook>(&calls, name);
  options.hooks.push_back(hook);
  return hook;
}

Operation MonitoredFixture::code(std::function<void()> body) {
  return ops::host_function(root, {}, {}, [body](const std::vector<Tensor>&) {
    body();
    return std::vector<Tensor>();
  });
}

int64_t MonitoredFixture::train_once(MonitoredSession& session) {
  session.run(train);
  return session.run(step).item<int64_t>();
}

void MonitoredFixture::report(const Coordinator& coord, std::function<void()> failure) {
  coord.start_thread("failing", std::move(failure));
  eventually([&] { return coord.should_stop(); });
}

}  // namespace longhaul
