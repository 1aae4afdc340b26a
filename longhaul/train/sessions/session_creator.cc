#include "longhaul/train/sessions/session_creator.h"

#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {
namespace {

std::shared_ptr<Scaffold> scaffold_or_default(const std::shared_ptr<Scaffold>& scaffold) {
  return scaffold ? scaffold : std::make_shared<Scaffold>();
}

// The program may change its working directory before a session is replaced.
ChiefSessionCreatorOptions with_absolute_paths(ChiefSessionCreatorOptions options) {
  for (std::string* path :
       {&options.checkpoint_dir, &options.checkpoint_filename_with_path, &options.mirror.directory}) {
    *path = absolute_directory(*path);
  }
  return options;
}

SessionManagerOptions manager_options(Graph& graph, const Scaffold& scaffold, const Coordinator& coordinator) {
  return {.graph = &graph,
          .local_init_op = scaffold.local_init_op(),
          .ready_op = scaffold.ready_op(),
          .ready_for_local_init_op = scaffold.ready_for_local_init_op(),
          .coordinator = coordinator};
}

}  // namespace

ChiefSessionCreator::ChiefSessionCreator(ChiefSessionCreatorOptions options)
    : options_(with_absolute_paths(std::move(options))),
      graph_(Graph::or_default(options_.graph, "the option .graph")),
      scaffold_(scaffold_or_default(options_.scaffold)) {}

std::shared_ptr<Session> ChiefSessionCreator::create_session() {
  scaffold_->finalize(graph_);
  SessionManagerOptions manager = manager_options(graph_, *scaffold_, options_.coordinator);
  manager.files = options_.files;
  if (options_.tenure) {
    manager.skip_reason = [this](const std::string& prefix) { return options_.tenure->skip_reason(prefix); };
    manager.is_skipped = [this](const std::string& prefix) { return options_.tenure->is_skipped(prefix); };
    manager.drops_model = [this] { return options_.tenure->goes_back(); };
  }
  const std::shared_ptr<Saver> saver = scaffold_->saver();
  SessionManager sessions(manager);
  std::shared_ptr<Session> session =
      sessions.prepare_session({.master = options_.master,
                                .init_op = scaffold_->init_op(),
                                .saver = saver.get(),
                                .checkpoint_dir = options_.checkpoint_dir,
                                .checkpoint_filename_with_path = options_.checkpoint_filename_with_path,
                                .mirror = options_.mirror,
                                .deadline = options_.tenure ? options_.tenure->budget().deadline() : nullptr,
                                .recovery = options_.recovery,
                                .max_wait_secs = options_.max_wait_secs,
                                .config = options_.config,
                                .init_feed_dict = scaffold_->init_feed_dict(),
                                .init_fn = scaffold_->init_fn()});
  if (options_.tenure) options_.tenure->recovered(sessions.restored_from(), sessions.found_model());
  return session;
}

WorkerSessionCreator::WorkerSessionCreator(WorkerSessionCreatorOptions options)
    : options_(std::move(options)),
      graph_(Graph::or_default(options_.graph, "the option .graph")),
      scaffold_(scaffold_or_default(options_.scaffold)) {}

std::shared_ptr<Session> WorkerSessionCreator::create_session() {
  scaffold_->finalize(graph_);
  SessionManagerOptions manager = manager_options(graph_, *scaffold_, options_.coordinator);
  manager.recovery_wait_secs = options_.recovery_wait_secs;
  return SessionManager(manager).wait_for_session(options_.master, options_.config, options_.max_wait_secs);
}

}  // namespace longhaul
