#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/session/session.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

struct FallBackOptions;
struct Readiness;
struct ReadinessOps;

using InitFn = std::function<void(Session&)>;

// Operations that are run together; one of them, or several.
class OpList {
 public:
  OpList() = default;
  OpList(Operation op) : operations_{op} {}
  OpList(const Output& output) : operations_{output.op()} {}
  OpList(std::vector<Operation> operations) : operations_(std::move(operations)) {}

  bool empty() const { return operations_.empty(); }
  const std::vector<Operation>& operations() const { return operations_; }
  std::string names() const;  // "init, init_1"; "none"

 private:
  std::vector<Operation> operations_;
};

struct SessionManagerOptions {
  Graph* graph = nullptr;  // nullptr: the default graph
  OpList local_init_op;    // run in every session, also in recovered ones: local variables, tables
  // 1-D string tensors with what is not initialised yet: the model is ready when they are empty. Of the second kind, it
  // is ready for local_init_op. Invalid: always ready.
  Output ready_op;
  Output ready_for_local_init_op;
  // Whether, after a restore, the initializers are run of those global variables that the ready operations name as not
  // initialised: for a saver that leaves some out.
  bool initialize_missing = false;
  Seconds recovery_wait_secs{30};  // between two looks, where something is waited for
  RunOptions local_init_run_options;
  FileSystem* files = &FileSystem::real();
  Coordinator coordinator{};  // a stop of it ends what waits; its clock measures the waits
  // Makes the sessions; empty: new_session().
  SessionFactory session_factory;
  // Why a checkpoint of the directory is not to be restored though it may be whole; nullopt: it may be. One that is
  // skipped for this is restored after all where no other is left. Empty: none is skipped.
  std::function<std::optional<std::string>(const std::string& prefix)> skip_reason;
};

struct PrepareOptions {
  std::string master;
  OpList init_op;
  Saver* saver = nullptr;
  // Where to recover from: the newest whole checkpoint of a directory, or this one. At most one of the two.
  std::string checkpoint_dir;
  std::string checkpoint_filename_with_path;
  std::string mirror_dir;                                // of checkpoint_dir, searched as well; empty: there is none
  Seconds mirror_timeout{60};                            // for how long it is searched
  std::string checkpoint_basename;                       // which checkpoints of the directory count; empty: all
  bool search_directory = true;                          // ChiefOptions::search_directory
  bool wait_for_checkpoint = false;                      // if there is none yet
  std::optional<Seconds> max_wait_secs = Seconds{7200};  // nullopt: for ever
  SessionOptions config;
  Feeds init_feed_dict;
  InitFn init_fn;  // called after init_op
};

struct RecoveredSession {
  std::shared_ptr<Session> session;
  bool initialized = false;  // recovered, and ready
};

// Makes sessions with an initialised model: restored from a checkpoint, initialised, or initialised by another process.
// The ready operation is run before and after: a model that is ready as the session finds it (on a server that an
// earlier session of the program has used) is left as it is, neither restored nor initialised (model_is_there()).
//
// Of a directory the newest checkpoint is restored that is whole; damaged ones are renamed (fall_back.h).
//
// A model that is initialised with a saver from whose checkpoints it could not be made ready is warned of
// (missing_variables.h).
//
// One thread at a time.
class SessionManager {
 public:
  // InvalidArgumentError: ready_for_local_init_op without local_init_op.
  explicit SessionManager(SessionManagerOptions options);

  // For the chief. Restores if there is a checkpoint, else runs init_op and init_fn, if the model is not ready yet;
  // then local_init_op; then checks. InvalidArgumentError: both ways to name a checkpoint. FailedPreconditionError:
  // there is nothing to initialise with, or "Init operations did not make model ready". DataLossError: there are
  // checkpoints and none is whole. CancelledError: stopped while waiting. What Saver::restore() throws for a checkpoint
  // that does not fit the graph.
  std::shared_ptr<Session> prepare_session(const PrepareOptions& options);

  // Makes a session and restores it if there is something to restore; of the options those for initialising play no
  // part. A model that was restored and is not ready is no error.
  RecoveredSession recover_session(const PrepareOptions& options);

  // For the others: waits until the chief has initialised the model. DeadlineExceededError: not within max_wait_secs.
  // CancelledError: stopped while waiting.
  std::shared_ptr<Session> wait_for_session(const std::string& master, const SessionOptions& config = {},
                                            std::optional<Seconds> max_wait_secs = Seconds{7200});

  // The checkpoint from which the last session was restored; empty: it was not.
  const std::string& restored_from() const { return restored_from_; }

 private:
  static void check_checkpoint_arguments(const PrepareOptions& options);
  std::shared_ptr<Session> make_session(const std::string& master, const SessionOptions& config) const;
  bool take_or_restore(Session& session, const PrepareOptions& options);
  void manage_checkpoints_of_directory(const PrepareOptions& options) const;
  bool restore(Session& session, const PrepareOptions& options);
  bool restore_newest(Session& session, const PrepareOptions& options);
  FallBackOptions fall_back_options(const PrepareOptions& options) const;
  void wait_for_checkpoint(const PrepareOptions& options) const;
  void warn_of_skipped(const PrepareOptions& options) const;
  bool begins_anew(const PrepareOptions& options) const;
  void initialize(Session& session, const PrepareOptions& options) const;
  void initialize_missing(Session& session, const Feeds& feeds) const;
  void warn_of_missing(const PrepareOptions& options) const;
  ReadinessOps readiness_ops() const;
  Readiness try_local_init(Session& session) const;
  void check_initialized(Session& session, const PrepareOptions& options) const;
  Seconds next_wait(std::optional<Seconds> max_wait_secs, Seconds waited) const;
  void wait(Seconds time, const std::string& for_what) const;

  const SessionManagerOptions options_;
  Graph& graph_;
  std::string restored_from_;
};

}  // namespace longhaul
