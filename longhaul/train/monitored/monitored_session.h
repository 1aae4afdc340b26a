#pragma once

#include <array>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/coordination/restarts.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/monitored/step_context.h"
#include "longhaul/train/sessions/session_creator.h"
#include "longhaul/train/signals/write_signals.h"

namespace longhaul {

class ChiefTenure;
class CoordinatedSession;
class MonitoredCallable;
class Preemption;
class Teardown;

struct MonitoredSessionOptions {
  std::shared_ptr<SessionCreator> session_creator{};  // nullptr: a ChiefSessionCreator with the defaults
  SessionRunHooks hooks{};
  Seconds stop_grace_period_secs{120};  // how long the session's threads may take to stop
  RestartOptions restart{};             // when the session is lost
  // The program's own coordinator. Stopping it, from any thread, ends training after the run under way (StopSignals)
  // and stops the session's threads and waiting hooks; a run that waits for a queue filled by those threads finds the
  // queue closed. Its clock measures the waits. The session does not throw errors that are reported to it; the program
  // must handle them.
  Coordinator coordinator{};
  Preemption* preemption = nullptr;  // stops the coordinator (train/signals/preemption.h); nullptr: none
  // Begins before the hooks and ends after everything else. In between, its directory is locked and a second chief is
  // refused. If another chief takes the directory over, the session stops and throws DirectoryLostError. The creator
  // and the hooks that save must have the same tenure. nullptr: there is no directory to lock.
  std::shared_ptr<ChiefTenure> tenure = {};
};

// A session that makes its model ready, lets hooks extend its runs, and replaces itself when it is lost.
//
//   auto stop = std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.last_step = 1000});
//   MonitoredSession session({.hooks = {stop}});
//   session.monitor([&] {
//     while (!session.should_stop()) session.run(train_op);
//   });
//
// The constructor calls the hooks' begin(), makes a session through the creator, which finalizes the graph, starts the
// queue runners of the graph's collection, and passes the session to the hooks. When a call fails because of a lost
// session (is_lost_session(); this includes errors reported by the session's threads), the session is closed, a new one
// is made after a pause, and the call is repeated from its beginning. Anything that the program did between two calls
// is not undone. Any other error is thrown.
//
// On servers a run whose session is lost may nevertheless have been committed. It is not repeated: its fetches are
// recomputed from the current model if that has no side effects and consumes no input. The other results are undefined
// tensors, and an error from using one says so. If nobody can tell whether a run was committed, it is repeated, and the
// log says so. (In run_step_fn() this holds for StepContext::run_with_hooks().)
//
// If a DivergenceHook detects a bad loss, the session is also replaced, by one that restores the last good checkpoint.
// The run is not repeated: it returns what it has computed, and the next run uses the restored model. (A step function
// is called again.)
//
// One thread at a time may call, but never from within a hook or a step function: these get what they need as
// arguments. Other threads use the Session that is passed to hooks.
class MonitoredSession {
 public:
  // InvalidArgumentError: a null hook. DirectoryLockedError: the tenure's directory has another chief. Throws what
  // hooks and the creator throw, and the error of the last lost session once no more restarts are allowed. A stop while
  // waiting for the first session is not an error: there is then no session, and should_stop() is true.
  explicit MonitoredSession(MonitoredSessionOptions options = {});

  // Closes without calling the hooks' end(): a session that was not closed has not ended well.
  ~MonitoredSession();
  MonitoredSession(const MonitoredSession&) = delete;
  MonitoredSession& operator=(const MonitoredSession&) = delete;

  // Calls `body`, then closes. If the body throws OutOfRangeError (the end of the input) or StopIteration, it has ended
  // well. Any other error from it is thrown at the end, and the hooks' end() is not called. This does not apply to the
  // error of a run that was refused because a hook had requested a stop: then the hooks' end() is called, so that what
  // was trained before is saved. A thread's error takes precedence over the body's. FailedPreconditionError: the body
  // has closed the session ("Session is already closed").
  void monitor(const std::function<void()>& body);

  // Session::run() with the hooks. `metadata` receives the records that the options of the caller or of a hook request;
  // null: they are dropped. Throws what the run and the hooks throw; the message of a hook's error names the hook and
  // the call. FailedPreconditionError: a hook has requested a stop ("Run called even after should_stop requested.
  // ..."); a hook and the caller, or two hooks, feed the same tensor ("Same tensor is fed"); the session is closed.
  // StopIteration: there is no session, because a stop was requested before the first one, or a replacement, was made.
  // DirectoryLostError: the tenure's directory belongs to another chief now. If the session is lost in a run in which a
  // hook requests a stop, the run is repeated, and no further run is made.
  Tensor run(const Fetch& fetch, const Feeds& feeds = {}, const RunOptions& options = {},
             proto::RunMetadata* metadata = nullptr);
  std::vector<Tensor> run(const std::vector<Fetch>& fetches, const Feeds& feeds = {}, const RunOptions& options = {},
                          proto::RunMetadata* metadata = nullptr);
  template <Fetchable T>
  std::vector<Tensor> run(const std::vector<T>& fetches, const Feeds& feeds = {}, const RunOptions& options = {},
                          proto::RunMetadata* metadata = nullptr) {
    return run(std::vector<Fetch>(fetches.begin(), fetches.end()), feeds, options, metadata);
  }

  // Like Session::make_callable(): prepares a run for many calls, here with the hooks.
  MonitoredCallable make_callable(const Fetch& fetch, const std::vector<Fetch>& feeds = {});
  MonitoredCallable make_callable(const std::vector<Fetch>& fetches, const std::vector<Fetch>& feeds = {});

  // Calls `step_fn` with a StepContext and returns what it returns. If the session is lost during the call, the whole
  // call is repeated.
  template <typename StepFn>
    requires std::invocable<StepFn&, StepContext&>
  auto run_step_fn(StepFn&& step_fn);

  // True if a stop was requested by a hook, a thread or the options' coordinator; if there is no session, because it is
  // closed or lost for good; or if the tenure's directory belongs to another chief. If a thread has reported that the
  // session is lost, replaces it first; this throws the same errors as in run().
  bool should_stop();

  // Calls each hook's end(), even if others threw; then stops the session's threads, closes the session, makes the
  // graph changeable again if it was before, and ends the tenure, in the order of ChiefTenure::end(). Throws what the
  // hooks throw, and any error that a thread has reported. The loss of the session is such an error only in a
  // SingularMonitoredSession. May be called twice.
  void close();

  Graph& graph() const { return options_.session_creator->graph(); }

 protected:
  enum class Recovery { kReplaceLost, kThrowLost };
  MonitoredSession(MonitoredSessionOptions options, Recovery recovery);
  CoordinatedSession* current() const { return current_.get(); }

 private:
  friend class MonitoredCallable;

  std::exception_ptr try_to_create();
  bool may_replace(const std::exception_ptr& cause) const;
  void replace(std::exception_ptr cause);
  CoordinatedSession& open_session() const;
  template <typename Attempt>
  auto with_session(const Attempt& attempt);
  std::vector<Tensor> run_args(const SessionRunArgs& args, std::span<const Tensor* const> feed_values,
                               proto::RunMetadata* metadata);
  std::vector<Tensor> run_fetches(const Feeds& feeds, const RunOptions& options, proto::RunMetadata* metadata);
  void do_step(const std::function<void(StepContext&)>& step_fn);
  void finish(const std::exception_ptr& error);
  std::exception_ptr shut_down(const std::exception_ptr& error);
  void stop_threads(Teardown& end, CoordinatedSession* last) const;

  const WriteSignals write_signals_;
  const MonitoredSessionOptions options_;
  const Coordinator stops_;  // child of the program's, parent of each session's; has an error if the directory was lost
  const std::shared_ptr<ChiefTenure> tenure_;
  const bool recovers_;
  const bool graph_was_finalized_;
  Restarts restarts_;
  std::shared_ptr<const Coordinator> preempted_;  // the subscription to a preemption's stops; null: none
  std::unique_ptr<CoordinatedSession> current_;   // null: lost and not replaced, or closed
  bool hook_stop_ = false;                        // a hook requested a stop in a run that failed
  bool closed_ = false;
  SessionRunArgs args_;  // of the run under way; a member so that its memory is reused
};

// The result of MonitoredSession::make_callable(). May be copied. Use it only while that session exists, and on its
// thread.
class MonitoredCallable {
 public:
  // Takes one argument for each named feed and returns one result for each fetch.
  template <typename... Ts>
    requires(std::is_convertible_v<const Ts&, const Tensor&> && ...)
  std::vector<Tensor> operator()(const Ts&... feeds) {
    const std::array<const Tensor*, sizeof...(Ts)> pointers{&static_cast<const Tensor&>(feeds)...};
    return call(pointers);
  }
  std::vector<Tensor> call(std::span<const Tensor* const> feeds);

 private:
  friend class MonitoredSession;
  MonitoredCallable(MonitoredSession& session, const std::vector<Fetch>& fetches, const std::vector<Fetch>& feeds);

  MonitoredSession* session_;
  SessionRunArgs args_;
};

struct SingularMonitoredSessionOptions {
  Graph* graph = nullptr;  // nullptr: the default graph
  SessionRunHooks hooks{};
  std::shared_ptr<Scaffold> scaffold{};  // nullptr: one with the defaults
  std::string master{};
  SessionOptions config{};
  std::string checkpoint_dir{};                 // the directory to recover from, or
  std::string checkpoint_filename_with_path{};  // the checkpoint itself
  Seconds stop_grace_period_secs{120};
  RecoveryOptions recovery{};  // of the directory
  FileSystem* files = &FileSystem::real();
  Coordinator coordinator{};  // see MonitoredSessionOptions
};

// A monitored session that is not replaced when it is lost: the error is thrown.
class SingularMonitoredSession : public MonitoredSession {
 public:
  explicit SingularMonitoredSession(SingularMonitoredSessionOptions options = {});

  Session* raw_session() const;  // nullptr: closed
};

template <typename StepFn>
  requires std::invocable<StepFn&, StepContext&>
auto MonitoredSession::run_step_fn(StepFn&& step_fn) {
  using Result = std::invoke_result_t<StepFn&, StepContext&>;
  if constexpr (std::is_void_v<Result>) {
    do_step([&](StepContext& context) { step_fn(context); });
  } else {
    std::optional<std::decay_t<Result>> result;
    do_step([&](StepContext& context) { result.emplace(step_fn(context)); });
    return *std::move(result);
  }
}

}  // namespace longhaul
