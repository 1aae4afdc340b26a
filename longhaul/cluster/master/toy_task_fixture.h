#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "longhaul/cluster/simulation/simulated_network.h"
#include "longhaul/proto/cluster_service.pb.h"

namespace longhaul {

// A task of a cluster for tests of masters, without libtorch: it keeps to the protocol (proto/cluster_service.proto),
// but of a part it only counts the writes of each variable. A fetched variable is its count, what was fed is itself,
// and anything else is its name. One thread.
class ToyTask : public std::enable_shared_from_this<ToyTask> {
 public:
  static std::shared_ptr<ToyTask> start(SimulatedNetwork& network, const std::string& task);
  ToyTask(SimulatedNetwork& network, std::shared_ptr<Transport> transport)
      : network_(network), transport_(std::move(transport)) {}

  Transport& transport() { return *transport_; }

  std::map<std::string, int64_t> counts;  // of writes, by variable
  std::set<int64_t> committed;            // all steps that have written

  // ---- What it is told to do ----

  std::exception_ptr fails;            // each part, before it writes
  std::exception_ptr fails_later;      // what follows the writes
  bool hangs = false;                  // parts do not end by themselves
  bool is_silent = false;              // LookAtStep is not answered
  proto::LookAtStepReply place;        // what is answered else, with the step's state
  std::optional<std::string> trace{};  // what it has recorded of a traced part
  std::vector<std::string> device_types{"CPU"};

  // The generation that WaitForChange tells of goes up.
  void change();

  // ---- What is there ----

  size_t sessions() const { return sessions_.size(); }
  size_t parts() const;
  size_t unfinished_steps() const;
  size_t shut_doors() const { return doors_.size(); }
  size_t taken() const { return taken_.size(); }
  size_t looks() const { return looks_; }  // LookAtStep
  std::vector<std::string> resets;         // the containers of each Reset, joined with ","

 private:
  using Call = std::shared_ptr<IncomingCall>;
  struct ToySession {
    std::vector<Call> watches;
    std::map<std::string, proto::RegisterGraphRequest> parts;
  };
  struct Step {
    proto::RunPartRequest request;
    proto::RegisterGraphRequest part;
    std::vector<Tensor> feeds;
    proto::StepState state = proto::STEP_RUNNING;
    std::exception_ptr error;
    bool is_over = false, is_in_doubt = false;
    std::set<std::string> past;  // snapshots whose door it may pass
    std::vector<Call> runs, commits, written;
    std::vector<Tensor> results;
  };

  void serve();
  void on(const std::string& method, void (ToyTask::*handler)(const Call&));

  void get_status(const Call& call);
  void watch(const Call& call);
  void register_graph(const Call& call);
  void deregister_graph(const Call& call);
  void run_part(const Call& call);
  void commit(const Call& call);
  void abort(const Call& call);
  void ask(const Call& call);
  void look_at_step(const Call& call);
  void freeze(const Call& call);
  void take(const Call& call);
  void open(const Call& call);
  void wait_for_change(const Call& call);
  void reset(const Call& call);

  ToySession& session_of(const std::string& session);
  void end_session(const std::string& session, const std::string& why);
  void compute(int64_t number, Step& step);
  void write(int64_t number, Step& step);
  void set_aborted(Step& step, std::exception_ptr error);
  void answer(Step& step);
  void read(Step& step);
  Tensor value_of(const Step& step, const std::string& fetch) const;
  void open_door(const std::string& snapshot);
  void ask_others(int64_t number);

  SimulatedNetwork& network_;
  const std::shared_ptr<Transport> transport_;
  std::map<std::string, ToySession> sessions_;
  std::set<std::string> ended_;
  std::vector<Call> early_;  // RegisterGraph before its Watch
  std::map<int64_t, Step> steps_;
  std::map<int64_t, proto::StepState> forgotten_;
  std::set<std::string> doors_;  // of snapshots, which keep the gate shut
  std::set<std::string> taken_;  // snapshots whose values are held
  uint64_t generation_ = 1;
  std::vector<Call> waiting_for_change_;
  size_t looks_ = 0;
  std::vector<Call> unanswered_looks_;
};

}  // namespace longhaul
