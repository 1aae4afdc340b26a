#include "longhaul/launch/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/launch/host_list.h"

namespace longhaul {
namespace {

constexpr char kSlurm[] = "Slurm";
constexpr int kHighestPort = 65535;

[[noreturn]] void refuse_slurm(const std::string& why) {
  throw InvalidArgumentError(fmt::format("{}: {}", kSlurm, why));
}

// A variable that is set, with its name.
struct Setting {
  std::string name, value;
};

Setting first_setting(const LaunchEnvironment& environment, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (auto value = environment(name); value && !value->empty()) return {name, *std::move(value)};
  }
  refuse_slurm(fmt::format("none of the variables {} is set: start the program with srun", fmt::join(names, ", ")));
}

int number_in(const Setting& setting, int least) {
  int number = 0;
  const std::string& text = setting.value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > kMostLaunchedTasks) {
    refuse_slurm(fmt::format("{} is '{}', but must be a number from {} to {}", setting.name, excerpt(text), least,
                             kMostLaunchedTasks));
  }
  return number;
}

template <typename Expand>
auto expanded(const Setting& setting, const Expand& expand) {
  try {
    return expand(setting.value);
  } catch (const InvalidArgumentError& error) {
    refuse_slurm(fmt::format("{}: {}", setting.name, error.what()));
  }
}

// The process's place among those of the step.
struct Rank {
  int rank = 0;
  int size = 1;
};

Rank own_rank(const LaunchEnvironment& environment) {
  Rank own;
  own.rank = number_in(first_setting(environment, {"OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}), 0);
  own.size = number_in(first_setting(environment, {"OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"}), 1);
  if (own.rank < own.size) return own;
  refuse_slurm(fmt::format("this process is the rank {} of {} tasks", own.rank, own.size));
}

std::vector<int> counts_of_nodes(const LaunchEnvironment& environment, size_t nodes) {
  const Setting setting =
      first_setting(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  if (setting.name == "SLURM_NTASKS_PER_NODE") return std::vector<int>(nodes, number_in(setting, 1));
  const std::vector<int> counts = expanded(setting, expand_task_counts);
  if (counts.size() == nodes) return counts;
  refuse_slurm(fmt::format("{} ('{}') is for {} nodes, but the step has {}", setting.name, excerpt(setting.value),
                           counts.size(), nodes));
}

// The address of each rank, and the number of its node.
struct Place {
  std::string address;
  int node = 0;
};

std::vector<Place> places_of_ranks(const LaunchEnvironment& environment, int port_base, int size) {
  const Setting nodes = first_setting(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const std::vector<std::string> hosts = expanded(nodes, expand_host_list);
  const std::vector<int> counts = counts_of_nodes(environment, hosts.size());
  std::vector<Place> places;
  for (size_t node = 0; node < hosts.size(); ++node) {
    for (int i = 0; i < counts[node] && places.size() < static_cast<size_t>(size); ++i) {
      places.push_back({fmt::format("{}:{}", hosts[node], port_base + i), static_cast<int>(node)});
    }
  }
  if (places.size() == static_cast<size_t>(size)) return places;
  refuse_slurm(fmt::format("the {} nodes of {} have {} tasks in all, but the step has {}", hosts.size(), nodes.name,
                           places.size(), size));
}

// With a number in place of kOtherTasks.
std::map<std::string, int> counted_jobs(const SlurmOptions& options, int size) {
  std::map<std::string, int> jobs = options.jobs;
  int left = size;
  int* others = nullptr;
  for (auto& [job, tasks] : jobs) {
    if (tasks == SlurmOptions::kOtherTasks && others == nullptr) {
      others = &tasks;
    } else if (tasks < 0 || tasks > kMostLaunchedTasks) {
      refuse_slurm(fmt::format("the job '{}' cannot have {} tasks", excerpt(job), tasks));
    } else {
      left = std::max(left - tasks, -1);  // below 0: too many, whatever follows
    }
  }
  if (others != nullptr && left > 0) left -= * others = left;
  if (left == 0 && (others == nullptr || *others > 0)) return jobs;
  std::vector<std::string> texts;
  for (const auto& [job, tasks] : options.jobs) texts.push_back(fmt::format("{} {}", job, tasks));
  refuse_slurm(fmt::format("the step has {} tasks, but the jobs have others in all: {}", size, fmt::join(texts, ", ")));
}

// On a node above or below, the addresses of all tasks would be wrong.
void check_node(const LaunchEnvironment& environment, int rank, int node) {
  const auto value = environment("SLURM_NODEID");
  if (!value || value->empty()) return;
  const int actual = number_in({"SLURM_NODEID", *value}, 0);
  if (actual == node) return;
  refuse_slurm(
      fmt::format("the rank {} runs on the node {} of the step, but the tasks per node say {}: start the "
                  "program with srun --distribution=block",
                  rank, actual, node));
}

LaunchedTask task_at(const std::map<std::string, int>& jobs, const std::vector<Place>& places, int own_rank) {
  LaunchedTask task;
  std::map<std::string, JobTasks> cluster;
  int rank = 0;
  for (const auto& [job, tasks] : jobs) {
    std::map<int, std::string> addresses;
    for (int i = 0; i < tasks; ++i, ++rank) {
      addresses.emplace(i, places[static_cast<size_t>(rank)].address);
      if (rank != own_rank) continue;
      task.job = job;
      task.index = i;
    }
    cluster.emplace(job, std::move(addresses));
  }
  task.cluster = ClusterSpec(cluster);
  return task;
}

}  // namespace

LaunchedTask task_from_slurm(const SlurmOptions& options, const LaunchEnvironment& environment) {
  if (!environment("SLURM_PROCID") && !environment("OMPI_COMM_WORLD_RANK")) return {};
  if (options.port_base < 1 || options.port_base > kHighestPort) {
    refuse_slurm(fmt::format("port_base must be from 1 to {}, not {}", kHighestPort, options.port_base));
  }
  const Rank own = own_rank(environment);
  const std::map<std::string, int> jobs = counted_jobs(options, own.size);
  const std::vector<Place> places = places_of_ranks(environment, options.port_base, own.size);
  check_node(environment, own.rank, places[static_cast<size_t>(own.rank)].node);
  LaunchedTask task = task_at(jobs, places, own.rank);
  check_launched_task(task, kSlurm);
  return task;
}

}  // namespace longhaul
