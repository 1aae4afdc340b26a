#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/session/session.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/saving/recovery_options.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

class Deadline;
struct FallBackOptions;
struct Readiness;
struct ReadinessOps;

using InitFn = std::function<void(Session&)>;

// One or more operations that are run together.
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
  OpList local_init_op{};  // run in every session, also in restored ones: local variables, tables
  // 1-D string tensors with the names of the variables that are not initialised yet. The model is ready when the first
  // is empty, and ready for local_init_op when the second is empty. A default-constructed (invalid) Output: always
  // ready.
  Output ready_op{};
  Output ready_for_local_init_op{};
  // During a wait, the longest time between two checks of the model. On servers, a change of the model ends the wait.
  Seconds recovery_wait_secs{30};
  RunOptions local_init_run_options{};
  FileSystem* files = &FileSystem::real();
  Coordinator coordinator{};  // stopping it ends waits; its clock measures them
  // Creates the sessions; empty: new_session().
  SessionFactory session_factory{};
  // Returns the reason to skip an intact checkpoint of the directory, or nullopt to accept it. A skipped checkpoint is
  // still restored if no other is left. Empty: none is skipped.
  std::function<std::optional<SkipReason>(const std::string& prefix)> skip_reason{};
  // Whether skip_reason() would have one; it is not asked for a restore. Empty: never.
  std::function<bool(const std::string& prefix)> is_skipped{};
  // Whether the model that servers have is dropped instead of continued, because its loss went bad: prepare_session()
  // then empties the containers of its tasks, which ends the sessions of all that train it, and restores or initialises
  // the model. Empty: never.
  std::function<bool()> drops_model{};
};

struct PrepareOptions {
  std::string master{};
  OpList init_op{};
  Saver* saver = nullptr;
  // Restores the newest intact checkpoint of a directory, or this one. At most one of the two.
  std::string checkpoint_dir{};
  std::string checkpoint_filename_with_path{};
  MirrorSearchOptions mirror{};        // of checkpoint_dir, searched too
  const Deadline* deadline = nullptr;  // ends the search of the mirror; nullptr: none
  std::string checkpoint_basename{};   // only checkpoints of this name count; empty: all do
  RecoveryOptions recovery{};
  bool wait_for_checkpoint = false;                      // wait if the directory has no checkpoint yet
  std::optional<Seconds> max_wait_secs = Seconds{7200};  // nullopt: forever
  SessionOptions config{};
  Feeds init_feed_dict{};
  InitFn init_fn{};  // called after init_op
};

struct RecoveredSession {
  std::shared_ptr<Session> session;
  bool initialized = false;  // restored, and ready
};

// Creates sessions with an initialised model: restored from a checkpoint, initialised here, or initialised by another
// process. The ready operation is run before and after that: a model that is ready from the start (on a server that an
// earlier session of the program used) is neither restored nor initialised (model_is_there()).
//
// From a directory, the newest intact checkpoint is restored; damaged ones are renamed (fall_back.h).
//
// Logs a warning if it initialises a model that could not be made ready from a checkpoint of its saver
// (missing_variables.h).
//
// On servers, max_wait_secs is also how long a session waits for a required task that has not started
// (SessionOptions::task_wait), unless that option is set: tasks may be started in any order, an hour apart. The log
// names the missing tasks every 10 s. AbortedError, UnavailableError: the session was lost before its model was ready;
// make another.
//
// One thread at a time may call.
class SessionManager {
 public:
  // InvalidArgumentError: ready_for_local_init_op without local_init_op.
  explicit SessionManager(SessionManagerOptions options);

  // For the chief. Unless the model is ready already, restores it if there is a checkpoint, or else runs init_op and
  // init_fn. Then runs local_init_op and checks that the model is ready. InvalidArgumentError: both a directory and a
  // checkpoint are given. FailedPreconditionError: there is nothing to initialise with, or "Init operations did not
  // make model ready". DataLossError: there are checkpoints but none is intact. CancelledError: stopped while waiting.
  // DeadlineExceededError: a task of a server has not come within max_wait_secs, and is named.
  // For a checkpoint that does not fit the graph, throws what Saver::restore() throws.
  std::shared_ptr<Session> prepare_session(const PrepareOptions& options);

  // Creates a session and restores the model if there is a checkpoint; ignores the options for initialising. A model
  // that is not ready after the restore is not an error.
  RecoveredSession recover_session(const PrepareOptions& options);

  // For the others: waits until the chief has initialised the model, with one session. DeadlineExceededError: not
  // within max_wait_secs. CancelledError: stopped while waiting. In this process (master "") nobody else can initialise
  // it: such a wait ends with the deadline.
  std::shared_ptr<Session> wait_for_session(const std::string& master, const SessionOptions& config = {},
                                            std::optional<Seconds> max_wait_secs = Seconds{7200});

  // The checkpoint from which the last session was restored; empty: none.
  const std::string& restored_from() const { return restored_from_; }
  // Whether the model of the last session was ready from the start, so that it was neither restored nor initialised.
  bool found_model() const { return found_model_; }

 private:
  static void check_checkpoint_arguments(const PrepareOptions& options);
  std::shared_ptr<Session> make_session(const std::string& master, SessionOptions config,
                                        std::optional<Seconds> max_wait_secs) const;
  std::shared_ptr<Session> make_ready(const PrepareOptions& options);
  bool take_or_restore(Session& session, const PrepareOptions& options);
  void manage_checkpoints_of_directory(const PrepareOptions& options, std::optional<int64_t> step) const;
  bool restore(Session& session, const PrepareOptions& options);
  bool restore_newest(Session& session, const PrepareOptions& options);
  FallBackOptions fall_back_options(const PrepareOptions& options) const;
  void wait_for_checkpoint(const PrepareOptions& options) const;
  void warn_of_skipped(const PrepareOptions& options) const;
  bool begins_anew(const PrepareOptions& options) const;
  void initialize(Session& session, const PrepareOptions& options) const;
  void initialize_missing(Session& session, const PrepareOptions& options) const;
  void warn_of_missing(const PrepareOptions& options) const;
  ReadinessOps readiness_ops() const;
  Readiness try_local_init(Session& session) const;
  void check_initialized(Session& session, const PrepareOptions& options) const;
  Readiness look(Session& session) const;
  void wait_until_ready(Session& session, const std::string& master, std::optional<Seconds> max_wait_secs) const;
  Seconds next_wait(std::optional<Seconds> max_wait_secs, Seconds waited) const;
  void wait(Seconds time, const std::string& for_what) const;

  const SessionManagerOptions options_;
  Graph& graph_;
  std::string restored_from_;
  bool found_model_ = false;
};

}  // namespace longhaul
