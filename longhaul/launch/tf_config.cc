#include "longhaul/launch/tf_config.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

using Json = nlohmann::json;

constexpr char kSource[] = "TF_CONFIG";
constexpr size_t kLongestText = 1 << 20;
constexpr int kDeepest = 8;

// Without the source of the text, which from_source() puts before it.
[[noreturn]] void refuse_config(const std::string& why) {
  throw InvalidArgumentError(why);
}

template <typename Parse>
auto from_source(const std::string& source, const Parse& parse) {
  try {
    return parse();
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(fmt::format("{}: {}", source, error.what()));
  }
}

// Looks at the text while it is parsed: the parser itself takes any depth, and of two equal names the second.
class Limits {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kDeepest) refuse_config(fmt::format("it is nested more than {} deep", kDeepest));
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key && !names_.back().insert(parsed.get<std::string>()).second) {
      refuse_config(fmt::format("the name \"{}\" is twice in one object", excerpt(parsed.get<std::string>())));
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> names_;  // of each object around
};

Json parse_json(std::string_view text) {
  if (text.size() > kLongestText) {
    refuse_config(fmt::format("it has {} bytes; {} are the most", text.size(), kLongestText));
  }
  try {
    Limits limits;
    return Json::parse(
        text, [&](int depth, Json::parse_event_t event, const Json& parsed) { return limits(depth, event, parsed); });
  } catch (const Json::exception& error) {
    refuse_config(fmt::format("it is not JSON: {}", excerpt(error.what())));
  }
}

Json parse_object(std::string_view text) {
  Json config = parse_json(text);
  if (!config.is_object()) refuse_config(fmt::format("it must be an object, not {}", config.type_name()));
  return config;
}

// nullptr: there is none.
const Json* find_member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const Json* find_object(const Json& object, const char* name) {
  const Json* found = find_member(object, name);
  if (found != nullptr && !found->is_object()) {
    refuse_config(fmt::format("\"{}\" must be an object, not {}", name, found->type_name()));
  }
  return found;
}

std::string text_of(const Json& value, const std::string& place) {
  if (!value.is_string()) refuse_config(fmt::format("{} must be a text, not {}", place, value.type_name()));
  return value.get<std::string>();
}

std::string text_member(const Json& object, const char* name, const std::string& otherwise) {
  const Json* found = find_member(object, name);
  return found == nullptr ? otherwise : text_of(*found, fmt::format("\"{}\"", name));
}

int index_of_digits(const std::string& digits, const std::string& place) {
  int index = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    refuse_config(fmt::format("{} is '{}', which is not an index", place, excerpt(digits)));
  }
  return index;
}

// A number, or a number in a text, as some operators write it.
int index_of(const Json& value, const std::string& place) {
  if (value.is_string()) return index_of_digits(value.get<std::string>(), place);
  if (!value.is_number_integer()) {
    refuse_config(fmt::format("{} must be an integer, not {}", place, excerpt(value.dump(-1, ' ', true))));
  }
  return index_of_digits(value.dump(), place);
}

JobTasks tasks_in(const std::string& job, const Json& value) {
  const std::string place = fmt::format("the job '{}'", excerpt(job));
  std::map<int, std::string> tasks;
  if (value.is_array()) {
    for (const Json& address : value) {
      const int index = static_cast<int>(tasks.size());
      tasks.emplace(index, text_of(address, fmt::format("the address of task {} of {}", index, place)));
    }
  } else if (value.is_object()) {
    for (const auto& [index, address] : value.items()) {
      const int number = index_of_digits(index, fmt::format("an index of {}", place));
      tasks.emplace(number, text_of(address, fmt::format("the address of task {} of {}", number, place)));
    }
  } else {
    refuse_config(fmt::format("the tasks of {} must be a list of addresses, not {}", place, value.type_name()));
  }
  return tasks;
}

ClusterSpec cluster_of(const Json& cluster) {
  std::map<std::string, JobTasks> jobs;
  for (const auto& [job, tasks] : cluster.items()) jobs.emplace(job, tasks_in(job, tasks));
  return ClusterSpec(jobs);
}

ClusterSpec cluster_in(const Json& config) {
  const Json* cluster = find_object(config, "cluster");
  return cluster == nullptr ? ClusterSpec() : cluster_of(*cluster);
}

// A cluster of a single task needs no word about which of them this is.
void take_only_task(LaunchedTask* task) {
  const std::vector<std::string> jobs = task->cluster.jobs();
  if (jobs.size() != 1 || task->cluster.num_tasks(jobs[0]) != 1) {
    refuse_config(
        "there is a \"cluster\" but no \"task\", so this process does not know which task it is: add "
        "\"task\": {\"type\": \"worker\", \"index\": 0}, or whatever it is");
  }
  task->job = jobs[0];
  task->index = task->cluster.task_indices(jobs[0])[0];
}

void read_task(const Json& config, LaunchedTask* task) {
  const Json* own = find_object(config, "task");
  const bool is_client = task->cluster.empty() || !task->session_master.empty();
  if (own == nullptr && is_client) return;
  if (own == nullptr) return take_only_task(task);
  const Json* type = find_member(*own, "type");
  if (type == nullptr) refuse_config("\"task\" has no \"type\"");
  task->job = text_of(*type, "\"type\" of \"task\"");
  const Json* index = find_member(*own, "index");
  if (index != nullptr) task->index = index_of(*index, "\"index\" of \"task\"");
  if (index == nullptr && !task->cluster.empty()) refuse_config("\"task\" has no \"index\"");
}

void check_alone(const LaunchedTask& task) {
  if (!task.cluster.empty() || task.is_chief() || task.is_evaluator()) return;
  refuse_config(
      fmt::format("there is no \"cluster\", so the task must be worker 0, the chief or the evaluator, not {} "
                  "{}",
                  excerpt(task.job), task.index));
}

LaunchedTask parse_task(std::string_view text) {
  LaunchedTask task;
  const Json config = parse_object(text);
  const std::string rpc_layer = text_member(config, "rpc_layer", "grpc");
  if (rpc_layer != "grpc") refuse_config(fmt::format("\"rpc_layer\" must be \"grpc\", not \"{}\"", excerpt(rpc_layer)));
  task.cluster = cluster_in(config);
  task.session_master = text_member(config, "session_master", "");
  read_task(config, &task);
  return task;
}

}  // namespace

LaunchedTask parse_tf_config(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) return {};
  LaunchedTask task = from_source(kSource, [&] { return parse_task(text); });
  check_launched_task(task, kSource);
  from_source(kSource, [&] { check_alone(task); });
  if (task.cluster.empty() && !task.job.empty() && !task.is_evaluator())
    log_warning("{} has a \"task\" but no \"cluster\", so this process trains alone: check the names in it", kSource);
  return task;
}

ClusterSpec parse_cluster(std::string_view text, const std::string& source) {
  return from_source(source, [&] {
    const Json config = parse_object(text);
    const Json* inner = find_member(config, "cluster");
    const ClusterSpec cluster = cluster_of(inner != nullptr && inner->is_object() ? *inner : config);
    if (cluster.empty()) refuse_config("there is no job in it");
    return cluster;
  });
}

LaunchedTask task_from_tf_config(const LaunchEnvironment& environment) {
  return parse_tf_config(environment(kSource).value_or(""));
}

}  // namespace longhaul
