#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "longhaul/cluster/tasks/session_tasks.h"
#include "longhaul/placement/part_graph.h"
#include "longhaul/placement/placer.h"

namespace longhaul {

// A run that was divided among tasks, each of which has its part. Immutable.
struct ClusterRun {
  struct Part {
    std::string task;
    std::string handle;  // of the graph on the task
    std::vector<RunPart::Named> feeds, fetches;
    bool commits = false;  // it writes variables, or draws a step's random numbers
    // What each step tells the task, but for the step's own: RunPartRequest.
    proto::RunPartRequest request;
  };

  std::vector<Part> parts;
  std::vector<std::pair<int, int>> fetched_feeds;  // as in DividedRun
  size_t fetches = 0;
  size_t commits = 0;  // how many parts
  bool is_snapshot = false;
  std::vector<proto::GraphDef> graphs;  // of the parts, for RunMetadata

  bool is_joint() const { return commits > 1; }
  bool writes() const { return commits > 0; }
  std::vector<std::string> tasks() const;  // sorted
};

struct ClusterRunOptions {
  PlacerOptions placer{};
  bool log_device_placement = false;
};

// The runs of a session: each is placed, divided and registered once. Any thread.
class ClusterRuns {
 public:
  using Options = ClusterRunOptions;

  ClusterRuns(std::shared_ptr<SessionTasks> tasks, const Options& options);

  // Of two threads that ask for the same new run, one makes it and the other waits. One that could not be made is tried
  // again when it is asked for again. `limits` have a cancellation: it ends when the session does, or before. Throws
  // what Placer, divide_run() and SessionTasks::use() throw, and the errors of
  // the tasks.
  std::shared_ptr<const ClusterRun> get(const Graph& graph, const Session::Request& request, const WaitLimits& limits)
      EXCLUDES(mutex_);

  // Runs that are made from now on draw random numbers of their own (TrainingJoining).
  void join_training(int64_t step) EXCLUDES(mutex_);

  // Drops the parts on the tasks; without waiting for longer than `limits`.
  void deregister(const WaitLimits& limits) EXCLUDES(mutex_);

 private:
  struct Entry {
    bool is_being_made = false;
    std::shared_ptr<const ClusterRun> run;
  };

  std::shared_ptr<const ClusterRun> begin(const std::string& key, const WaitLimits& limits) EXCLUDES(mutex_);
  void await_made(const std::string& key, Seconds deadline, const bool& is_cancelled) REQUIRES(mutex_);
  void end(const std::string& key, std::shared_ptr<const ClusterRun> run) EXCLUDES(mutex_);
  std::shared_ptr<const ClusterRun> make(const Graph& graph, const Session::Request& request, const WaitLimits& limits);
  Placement place(const Graph& graph, const std::vector<Operation>& needed, const WaitLimits& limits)
      EXCLUDES(placer_mutex_);
  void log_new(const Placement& placement) REQUIRES(placer_mutex_);
  void register_parts(ClusterRun& run, DividedRun divided, const WaitLimits& limits) EXCLUDES(mutex_);
  std::string joined_as() const EXCLUDES(mutex_);

  const std::shared_ptr<SessionTasks> tasks_;
  const Options options_;
  std::atomic<uint64_t> next_handle_{1};
  Mutex placer_mutex_;
  Placer placer_ GUARDED_BY(placer_mutex_);
  std::set<std::string> logged_ GUARDED_BY(placer_mutex_);
  mutable Mutex mutex_;
  CondVar made_;
  std::map<std::string, Entry> runs_ GUARDED_BY(mutex_);
  std::string joined_as_ GUARDED_BY(mutex_);  // empty: the graph's seed alone decides the random numbers
};

}  // namespace longhaul
