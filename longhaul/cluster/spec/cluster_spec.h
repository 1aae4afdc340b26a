#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace longhaul {

namespace proto {
class ClusterDef;
}

// The tasks of one job: a list of addresses, or a map from index to address, in which indices may be missing.
class JobTasks {
 public:
  JobTasks() = default;  // a job without tasks
  JobTasks(std::initializer_list<std::string> addresses);
  JobTasks(const std::vector<std::string>& addresses);
  JobTasks(std::initializer_list<std::pair<const int, std::string>> addresses) : by_index_(addresses) {}
  JobTasks(std::map<int, std::string> addresses) : by_index_(std::move(addresses)) {}

  // Whether the indices are 0, 1, ... without a gap, so that addresses() has them all at their places.
  bool is_list() const;
  const std::map<int, std::string>& by_index() const { return by_index_; }
  // The addresses in the order of their indices.
  std::vector<std::string> addresses() const;

  // A list equals the map with the same indices.
  bool operator==(const JobTasks&) const = default;

 private:
  std::map<int, std::string> by_index_;
};

// The jobs of a cluster and the addresses of their tasks (`tf.train.ClusterSpec`). A value, which never changes.
//
//   const ClusterSpec cluster({{"ps", {"ps0.example:2222"}},
//                              {"worker", {"worker0.example:2222", "worker1.example:2222"}}});
//   cluster.num_tasks("worker");        // 2
//   cluster.task_address("worker", 1);  // "worker1.example:2222"
//
// InvalidArgumentError, from all constructors: a job's name or an address is malformed, an index is negative or above
// kLastTask, a job is there twice, or two tasks have the same address (unless its port is 0, which is for a server on
// its own). The message names job, task and address.
class ClusterSpec {
 public:
  using TasksOfJobs = std::map<std::string, std::map<int, std::string>>;

  static constexpr int kLastTask = (1 << 20) - 1;

  ClusterSpec() = default;  // no jobs
  ClusterSpec(std::initializer_list<std::pair<const std::string, JobTasks>> jobs);
  explicit ClusterSpec(const std::map<std::string, JobTasks>& jobs);
  explicit ClusterSpec(const proto::ClusterDef& cluster);

  bool empty() const { return tasks_.empty(); }
  explicit operator bool() const { return !empty(); }

  std::vector<std::string> jobs() const;  // sorted
  bool has_job(const std::string& job) const { return tasks_.contains(job); }

  // The following throw InvalidArgumentError for a job ("No such job in cluster: 'ps'") or an index ("No task with
  // index 2 in job 'ps'") that the cluster does not have.
  int num_tasks(const std::string& job) const;
  std::vector<int> task_indices(const std::string& job) const;  // sorted
  const std::string& task_address(const std::string& job, int index) const;
  // By index, up to the last one; nullopt: there is no such task.
  std::vector<std::optional<std::string>> job_tasks(const std::string& job) const;

  std::map<std::string, JobTasks> as_dict() const;
  proto::ClusterDef as_cluster_def() const;  // its jobs sorted by name
  // The addresses by job and index: for options that take a cluster, such as `replica_device_setter`'s.
  const TasksOfJobs& tasks() const { return tasks_; }
  operator const TasksOfJobs&() const { return tasks_; }

  // Of a cluster whose tasks are to find each other. InvalidArgumentError: one of several tasks has port 0, which would
  // let the system choose a port that the others do not know.
  void check_can_be_found() const;

  // "ClusterSpec({'ps': ['ps0:1111'], 'worker': {0: 'worker0:3333', 2: 'worker2:4444'}})"
  std::string to_string() const;

  bool operator==(const ClusterSpec&) const = default;

 private:
  void add_job(const std::string& job, const std::map<int, std::string>& tasks);
  const std::map<int, std::string>& tasks_of(const std::string& job) const;
  void check_addresses() const;

  TasksOfJobs tasks_;
};

}  // namespace longhaul
