#include "longhaul/train/hooks/divergence_hook.h"

#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/train/reporting/logged_tensor.h"
#include "longhaul/train/sessions/scaffold.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {

DivergenceHook::DivergenceHook(Fetch loss, DivergenceHookOptions options)
    : loss_(std::move(loss)), options_(std::move(options)), way_back_(options_.divergence) {
  if (options_.tenure && options_.scaffold) return;
  throw InvalidArgumentError(
      "a DivergenceHook needs the tenure and the scaffold of its session. FailureOptions::loss of a "
      "monitored_training_session() makes a hook that has them");
}

void DivergenceHook::begin(Graph& graph) {
  step_.find(graph, "DivergenceHook");
  const Output loss = output_of(graph, loss_, "DivergenceHook");
  args_ = step_.args();
  args_.fetches.push_back(loss);
  if (!options_.divergence.keep_in_checkpoints) return;
  if (graph.finalized()) {
    log_warning(
        "the graph is finalized, so checkpoints do not have what a DivergenceHook has seen: after each restart it "
        "begins anew. Make the session before Graph::finalize()");
    return;
  }
  if (kept_in_ == &graph && graph.name_taken("divergence/losses")) return;
  way_back_.keep_in(Scope(graph));
  kept_in_ = &graph;
}

void DivergenceHook::after_create_session(Session& session, const Coordinator&) {
  if (session.capabilities().model_reset != nullptr && options_.divergence.keep_in_checkpoints)
    throw FailedPreconditionError(kServersKeepNothing);
  const std::shared_ptr<Saver> saver = options_.scaffold->saver();
  way_back_.session_begins({.journal = options_.tenure->journal(),
                            .saver = saver.get(),
                            .search = options_.search,
                            .events = options_.writer.get()},
                           session, saver ? saver->last_saved() : "", step_.now(session));
}

const SessionRunArgs* DivergenceHook::before_run(SessionRunContext&) {
  return &args_;
}

void DivergenceHook::after_run(SessionRunContext&, const SessionRunValues& values) {
  way_back_.look(HookStep::before_the_run(values), values.results[1].item<double>());
}

}  // namespace longhaul
