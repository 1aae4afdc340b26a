#include "longhaul/train/supervisor/supervisor_parts.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/train/coordination/checked_options.h"
#include "longhaul/train/divergence/way_back.h"
#include "longhaul/train/saving/startup_report.h"

namespace longhaul {
namespace {

// Where there are several processes, a variable without a device would be a different one in each.
void check_devices(const Graph& graph) {
  for (const Operation& op : graph.operations()) {
    if (op.type() == "VariableV2" && op.device().empty()) {
      throw InvalidArgumentError("When using replicas, all Variables must have their device set: " + op.name() +
                                 ". Build the graph in a Scope with_device(replica_device_setter({.cluster = ...}))");
    }
  }
}

std::shared_ptr<FileWriter> summary_writer(const SupervisorOptions& options) {
  if (!options.is_chief) return nullptr;
  if (options.summary_writer.has_value()) return options.summary_writer.value().pointer();
  if (!options.summary_writer.is_default() || options.logdir.empty()) return nullptr;
  return std::make_shared<FileWriter>(options.logdir,
                                      FileWriterOptions{.files = options.files, .clock = options.clock});
}

void check_values(const SupervisorOptions& options) {
  check_not_negative("save_summaries_secs", options.save_summaries_secs);
  if (!options.save_model_secs.is_auto()) check_not_negative("save_model_secs", options.save_model_secs.seconds());
  check_file_name("checkpoint_basename", options.checkpoint_basename);
  check_not_negative("services.digest_every_n_steps", static_cast<double>(options.services.digest_every_n_steps));
  check_save_attempts(options.services.saves, "services.saves");
  check_hang(options.services.hang, "services.hang");
  if (options.services.progress) check_progress(*options.services.progress, "services.progress");
}

// Before there is a session: what is wrong with the options is not to be held against the checkpoint that it restores.
void check_step(const SupervisorOptions& options, const Output& global_step) {
  const char* const service = options.services.divergence ? "divergence" : options.services.progress ? "progress" : "";
  if (*service != '\0' && !global_step.valid()) {
    throw InvalidArgumentError(
        fmt::format("ServiceOptions::{} needs a global step: call ops::create_global_step(), or set "
                    "SupervisorOptions::global_step",
                    service));
  }
  if (!options.services.progress) return;
  for (const LoggedTensor& value : options.services.progress->values)
    output_of(*options.graph, value.tensor, "ServiceOptions::progress");
}

}  // namespace

SupervisorOptions effective_options(SupervisorOptions options) {
  check_values(options);
  options.graph = &Graph::or_default(options.graph, "SupervisorOptions::graph");
  if (!options.chief.mirror.attempts) options.chief.mirror.attempts = default_mirror_attempts(*options.clock);
  if (!options.is_chief) {
    check_devices(*options.graph);
    options.logdir.clear();
    options.chief.mirror = {.attempts = options.chief.mirror.attempts};
    options.save_summaries_secs = Seconds{0};
    options.save_model_secs = Seconds{0};
    options.services.divergence.reset();
    return options;
  }
  options.logdir = absolute_directory(options.logdir);
  options.chief.mirror.directory = absolute_directory(options.chief.mirror.directory);
  if (options.logdir.empty() && !options.chief.mirror.directory.empty()) {
    throw InvalidArgumentError("the mirror " + options.chief.mirror.directory + " has nothing to mirror: set logdir");
  }
  return options;
}

std::unique_ptr<WayBack> way_back(const SupervisorOptions& options) {
  if (!options.services.divergence) return nullptr;
  auto made = std::make_unique<WayBack>(*options.services.divergence);
  if (options.logdir.empty()) {
    throw InvalidArgumentError("ServiceOptions::divergence has no checkpoints to go back to: set logdir");
  }
  if (options.saver.is_default() && !options.graph->finalized()) made->keep_in(Scope(*options.graph));
  return made;
}

GraphDefaults graph_defaults(const SupervisorOptions& options) {
  GraphDefaults defaults = resolve_defaults(*options.graph,
                                            {.ready_op = options.ready_op,
                                             .ready_for_local_init_op = options.ready_for_local_init_op,
                                             .init_op = options.init_op,
                                             .local_init_op = options.local_init_op,
                                             .saver = options.saver,
                                             .summary_op = options.summary_op,
                                             .global_step = options.global_step},
                                            {.saver = {.files = options.files, .clock = options.clock}});
  check_step(options, defaults.global_step);
  return defaults;
}

CheckpointPlace checkpoint_place(const std::string& given_logdir, const SupervisorOptions& options) {
  if (options.logdir.empty()) return {};
  check_writable(*options.files, options.logdir, "logdir");
  return {.save_path = join_path(options.logdir, options.checkpoint_basename),
          .relative_paths = !strip_file_scheme(given_logdir).starts_with('/')};
}

std::shared_ptr<SaveAttempts> save_attempts(const SupervisorOptions& options) {
  SaveAttemptsOptions attempts = options.services.saves;
  attempts.clock = options.clock;
  return std::make_shared<SaveAttempts>(attempts);
}

ChiefTenureOptions tenure_options(const SupervisorOptions& options, std::shared_ptr<SaveAttempts> saves) {
  return {.directory = options.logdir,
          .chief = options.chief,
          .saves = std::move(saves),
          .files = options.files,
          .clock = options.clock};
}

TrainingEvents training_events(const SupervisorOptions& options, const Saver* saver) {
  return TrainingEvents(summary_writer(options), *options.graph, saver);
}

std::shared_ptr<SessionManager> session_manager(const SupervisorOptions& options, const GraphDefaults& defaults,
                                                const Coordinator& coord, ChiefTenure& tenure) {
  if (options.session_manager != nullptr) return MaybeOwned<SessionManager>(options.session_manager).pointer();
  return std::make_shared<SessionManager>(
      SessionManagerOptions{.graph = options.graph,
                            .local_init_op = defaults.local_init_op,
                            .ready_op = defaults.ready_op,
                            .ready_for_local_init_op = defaults.ready_for_local_init_op,
                            .recovery_wait_secs = options.recovery_wait_secs,
                            .local_init_run_options = options.local_init_run_options,
                            .files = options.files,
                            .coordinator = coord,
                            .skip_reason = [&tenure](const std::string& prefix) { return tenure.skip_reason(prefix); },
                            .is_skipped = [&tenure](const std::string& prefix) { return tenure.is_skipped(prefix); },
                            .drops_model = [&tenure] { return tenure.goes_back(); }});
}

}  // namespace longhaul
