#!/usr/bin/env bash
# cast_lint_test.sh SOURCE_DIR: shows that cast_lint.sh finds each cast to what a session can do, and each in a plan.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree"/longhaul/{session,train/hooks,runtime/plan/parts}
cp "$1/longhaul/session/capabilities.h" "$tree/longhaul/session"
put() { printf '%s\n' "$2" >"$tree/longhaul/$1"; }

put train/hooks/a.cc '  auto* saver = dynamic_cast<CheckpointSaverHook*>(&hook);'
put train/hooks/b.cc '  auto* creator = dynamic_cast<const SessionCreator*>(&it);  // no dynamic_cast<Session*>(&it)'
put train/hooks/a_test.cc '  auto* engine = dynamic_cast<DirectSession*>(&session);'
put runtime/plan/plan.cc '  log_info("dynamic_cast<Host*>");  // not dynamic_cast<Host*>(&op)'
accepts "casts of other things, and of tests"
for type in 'StepFetching*' 'const StepWatching*' 'TrainingJoining&' 'session::ModelReset*' 'DirectSession*' \
  'Session&' 'const ClusterSession &'; do
  put train/hooks/a.cc "  auto it = dynamic_cast<$type>(session);"
  rejects "a cast to $type" "longhaul/train/hooks/a.cc:1: a cast in place of Session::capabilities(): "
done
put train/hooks/a.cc '  auto it = std::dynamic_pointer_cast<ClusterSession>(session);'
rejects "a cast of a shared pointer" "longhaul/train/hooks/a.cc:1: a cast in place of Session::capabilities(): "
put train/hooks/a.cc ''
put runtime/plan/parts/a.h '  return dynamic_cast<const HostInstruction*>(&instruction) != nullptr;'
rejects "a cast in a plan" "longhaul/runtime/plan/parts/a.h:1: a dynamic_cast in a plan: "
echo "the lint accepts and rejects as it should"
