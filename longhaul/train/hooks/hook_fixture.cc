#include "longhaul/train/hooks/hook_fixture.h"

namespace longhaul {

HookTest::HookTest() {
  set_step(0);
}

HookTest::~HookTest() = default;

void HookTest::set_step(int64_t value) {
  session->run(step.initializer(), {{step.initial_value(), Tensor::scalar<int64_t>(value)}});
}

int64_t HookTest::step_now() {
  return session->run(step).item<int64_t>();
}

void HookTest::begin(SessionRunHook& hook) {
  hook.begin(graph);
}

void HookTest::start(SessionRunHook& hook) {
  hook.begin(graph);
  hook.after_create_session(*session, coord);
}

bool HookTest::run(SessionRunHook& hook, const Fetch& fetch) {
  const SessionRunArgs callers{.fetches = {fetch}};
  SessionRunContext context(*session, callers);
  static const SessionRunArgs nothing;
  const SessionRunArgs* asked = hook.before_run(context);
  const SessionRunArgs& args = asked != nullptr ? *asked : nothing;
  std::vector<Fetch> fetches{fetch};
  fetches.insert(fetches.end(), args.fetches.begin(), args.fetches.end());
  fetched = args.fetches.size();
  proto::RunMetadata metadata;
  const std::vector<Tensor> values = session->run(fetches, args.feeds, args.options, &metadata);
  const bool traced = args.options.trace_level != TraceLevel::kNoTrace;
  hook.after_run(context, {std::span(values).subspan(1), &args.options, traced ? &metadata : nullptr});
  return context.stop_requested();
}

bool HookTest::train(SessionRunHook& hook, int64_t by) {
  return run(hook, adding(by));
}

Operation HookTest::adding(int64_t by) {
  Operation& op = adding_[by];
  if (!op.valid()) op = ops::assign_add(root, step, ops::constant(root, by)).op();
  return op;
}

std::vector<std::string> HookTest::events() {
  writer->flush();
  std::vector<std::string> lines = describe(events_in_directory(directory.path()));
  std::erase(lines, "version brain.Event:2");
  return lines;
}

}  // namespace longhaul
