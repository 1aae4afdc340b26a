#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/host/resource.h"
#include "longhaul/session/session.h"
#include "longhaul/session/step_fetch.h"

namespace longhaul::testing {

// A session for testing code that drives sessions. It interprets the built-in operations on host tensors and, on
// request, fails in the way that real sessions fail at bad moments.
//
// It knows constants, placeholders, variables and their assignments, counters, host functions and all operations with a
// host kernel (queues, readers, tables, summaries); other types of operations need a handler. Several sessions may
// share their variables, like sessions on one server.
//
// Traces have made-up times: run number n, from 0 on, begins 1.6e9 + n seconds after 1970, and each operation takes
// 10 us.
//
// In a program that calls run_on(), the sessions of an engine do the work instead of the interpreter. Hooks and counts
// then work as before; handlers and made-up times are not used.
class ScriptedSession : public Session, StepFetching {
 public:
  // Another kind of session; those on one server share their variables and resources.
  struct Engine {
    std::function<std::shared_ptr<void>()> new_server;
    std::function<std::unique_ptr<Session>(Graph& graph, const std::shared_ptr<void>& server)> new_session;
  };
  // Call this before the first session or Variables is created.
  static void run_on(Engine engine);
  static bool runs_on_engine();

  struct Variables {
    Variables();
    Mutex mutex;
    std::map<std::string, Tensor> values GUARDED_BY(mutex);
    ResourceMap resources;
    const std::shared_ptr<void> server;  // the engine's
  };
  using Handler = std::function<std::vector<Tensor>(const Operation& op, const std::vector<Tensor>& inputs)>;
  using Hook = std::function<void(int run, const Request& request)>;

  explicit ScriptedSession(Graph& graph, std::shared_ptr<Variables> variables = std::make_shared<Variables>());
  ~ScriptedSession() override;

  // Set these before the first run. The hook is called before each run, with the run's number (from 0 on), outside all
  // locks. It may throw, or block.
  void on(const std::string& op_type, Handler handler) { handlers_[op_type] = std::move(handler); }
  void before_each_run(Hook hook) { hook_ = std::move(hook); }

  int runs() const;
  int snapshot_runs() const;  // those that have ended
  bool closed() const;
  bool step_fetch_pending() const;

  // Step fetching; on an engine, also the capabilities of the engine's session.
  SessionCapabilities capabilities() override;
  void close() override;

 protected:
  std::vector<Tensor> do_run(const Request& request, std::span<const Tensor* const> feed_values,
                             proto::RunMetadata* metadata) override;
  std::shared_ptr<CompiledRun> do_make_callable(const Request& request) override;

 private:
  struct CountedSnapshot;
  struct Compiled;
  struct CompiledByEngine;

  void request_step_fetch(StepFetch request) override;
  void withdraw_step_fetch(const void* requester) override;

  int begin_run(const Request& request);  // returns its number
  std::vector<Tensor> interpret(int number, const Request& request, std::span<const Tensor* const> feed_values,
                                proto::RunMetadata* metadata);
  StepFetch take_step_fetch(const Request& request);

  const std::shared_ptr<Variables> variables_;
  Cancellation cancellation_;
  std::map<std::string, Handler> handlers_;
  Hook hook_;

  mutable Mutex mutex_;
  int runs_ GUARDED_BY(mutex_) = 0;
  int snapshot_runs_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
  StepFetch step_fetch_ GUARDED_BY(mutex_);
  int step_fetches_ GUARDED_BY(mutex_) = 0;  // the number of requests

  const std::unique_ptr<Session> engine_;  // null: the interpreter runs everything
};

}  // namespace longhaul::testing
