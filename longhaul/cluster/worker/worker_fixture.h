#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/cluster/simulation/simulated_network.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/peer_watch.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/cluster/worker/worker.h"
#include "longhaul/ops/math_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/placement/part_graph.h"
#include "longhaul/runtime/install.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {

// A process of a ps task.
struct PsProcess {
  PsProcess(SimulatedNetwork& network, const std::string& task, WorkerOptions options);

  std::shared_ptr<VariableSlot> slot(const std::string& name) const;
  // -1: it is not initialised.
  float value(const std::string& name) const;

  std::shared_ptr<Transport> transport;
  std::shared_ptr<TaskResources> resources;
  std::unique_ptr<Worker> worker;
  std::atomic<bool> was_killed = false;
};

// A variable on each of two tasks. A step adds x to `a`, and to `b` what `a` was, and x: so with x = 1, after n steps
// a = n and b = n (n + 1) / 2.
struct TwoTaskModel {
  TwoTaskModel() { install_runtime(); }

  DividedRun divide(const std::vector<Fetch>& fetches, bool is_snapshot = false) const;

  Graph graph;
  Scope root{graph};
  Scope on0 = root.with_device("/job:ps/task:0"), on1 = root.with_device("/job:ps/task:1");
  Variable a = ops::variable(on0, "a", Tensor::scalar(0.f)), b = ops::variable(on1, "b", Tensor::scalar(0.f));
  Output x = ops::placeholder(root, kFloat, {}, "x");
  Output next_a = ops::assign_add(on0, a, x);
  Output next_b = ops::assign_add(on1, b, ops::add(on1, a, x));
};

// The reply to a call that is answered later.
class LateReply {
 public:
  OutgoingCall::Done done();
  std::optional<CallReply> get() const;

 private:
  struct State {
    Mutex mutex;
    std::optional<CallReply> reply GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A master that a test scripts. It repeats a call whose line broke twice. One thread.
class ScriptedMaster {
 public:
  struct Part {
    std::string task, handle;
    bool commits = false;
    bool is_fed = false;
  };
  using Parts = std::vector<Part>;
  enum class Outcome { kCommitted, kAborted, kNotKnown };

  ScriptedMaster(SimulatedNetwork& network, std::shared_ptr<Transport> transport, std::string session)
      : network_(network), transport_(std::move(transport)), session_(std::move(session)) {}

  Transport& transport() { return *transport_; }
  const std::string& session() const { return session_; }
  bool is_lost() const { return *is_lost_; }

  // Watches both tasks. False: one has not answered.
  bool open();
  void close() { watches_.clear(); }

  // nullopt: a task has refused.
  std::optional<Parts> add(DividedRun run, bool is_snapshot = false);

  int64_t new_step() { return ++last_step_; }

  Outcome step(const Parts& parts, float x = 1);

  std::vector<CallReply> run(const Parts& parts, int64_t step, float x, const std::string& snapshot = {});

  CallRequest run_request(const Parts& parts, const Part& part, int64_t step, float x,
                          const std::string& snapshot = {}) const;

  // Commit, Abort or Cleanup of the step to all, and the replies.
  std::vector<CallReply> each(const Parts& parts, int64_t step, const char* method);

  static Message about_step(const std::string& method, int64_t step);

  CallRequest request(const std::string& task, const std::string& method, Message message) const;

  CallReply call(const std::string& task, const std::string& method, const google::protobuf::MessageLite& message);

  // Without an answer after the bound, which fails the test: UnavailableError.
  std::vector<CallReply> call_all(std::vector<CallRequest> requests);

  static bool all_good(const std::vector<CallReply>& replies);
  static bool is_joint(const Parts& parts);

 private:
  struct Awaited {
    explicit Awaited(size_t count) : replies(count) {}
    void set(size_t i, CallReply reply) {
      {
        MutexLock lock(mutex);
        replies[i] = std::move(reply);
      }
      --missing;
    }
    Mutex mutex;
    std::vector<std::optional<CallReply>> replies GUARDED_BY(mutex);
    std::atomic<int> missing = 0;
  };

  Message registration(RunPart& part, const std::string& handle, bool is_snapshot) const;

  static void add_bundles(const std::vector<RunPart::Message>& messages,
                          google::protobuf::RepeatedPtrField<proto::Bundle>* bundles);

  SimulatedNetwork& network_;
  const std::shared_ptr<Transport> transport_;
  const std::string session_;
  std::map<std::string, uint64_t> incarnations_;
  std::vector<std::unique_ptr<PeerWatch>> watches_;
  const std::shared_ptr<std::atomic<bool>> is_lost_ = std::make_shared<std::atomic<bool>>(false);
  int last_handle_ = 0;
  int64_t last_step_ = static_cast<int64_t>(new_incarnation() >> 2);  // no number of another master
};

// Two ps tasks and a task for masters, on a network with several threads.
class TwoTasks {
 public:
  explicit TwoTasks(WorkerOptions options = {});
  ~TwoTasks();

  SimulatedNetwork& network() { return network_; }
  SimulatedClock& clock() { return network_.clock(); }
  bool passes(const std::function<bool()>& done, double secs) { return clock().run_until(done, Seconds{secs}); }

  std::shared_ptr<PsProcess> ps() { return find(kPs); }
  std::shared_ptr<PsProcess> ps1() { return find(kPs1); }
  std::vector<std::shared_ptr<PsProcess>> all();
  bool any_was_killed();

  std::unique_ptr<ScriptedMaster> new_master(const std::string& session = "1234567890abcdef");

  void restart(const std::string& task) { start(task); }

  // Sessions, steps, jobs, calls: of living processes.
  bool is_anything_left();

 private:
  void start(const std::string& task);
  std::shared_ptr<PsProcess> find(const std::string& task);

  const ThreadsEnd threads_end_;
  const WorkerOptions options_;
  SimulatedNetwork network_{{.threads = SimulatedClock::Threads::kSeveral}};
  const SimulatedClock::AtWork at_work_{network_.clock()};
  std::shared_ptr<Transport> master_transport_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<PsProcess>> living_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<PsProcess>> all_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
