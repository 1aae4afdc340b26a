#include "longhaul/session/config_proto.h"

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

#include <cmath>
#include <limits>

#include "longhaul/base/excerpt.h"
#include "longhaul/graph/device_spec.h"
#include "longhaul/proto/config.pb.h"

namespace longhaul {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownField;

// Fields that the messages here leave out.
std::string name_of_unknown(const std::string& path, int number) {
  if (path == "RunOptions" && number == 6) return path + ".debug_options";
  if (path == "ConfigProto.graph_options" && number == 10) return path + ".rewrite_options";
  return fmt::format("{}, field {},", path, number);
}

std::string first_unknown(const Message& message, const std::string& path) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const UnknownField& field = unknown.field(i);
    const bool is_empty = field.type() == UnknownField::TYPE_LENGTH_DELIMITED && field.length_delimited().empty();
    if (!is_empty) return name_of_unknown(path, field.number());
  }
  return "";
}

// The path of a field that is set; empty if all have their defaults.
std::string first_set_field(const Message& message, const std::string& path) {
  if (std::string unknown = first_unknown(message, path); !unknown.empty()) return unknown;
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string place = fmt::format("{}.{}", path, field->name());
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated();
    std::string found = is_message ? first_set_field(reflection->GetMessage(message, field), place) : place;
    if (!found.empty()) return found;
  }
  return "";
}

// What is left of a message once all that works has been taken out of it.
void refuse_the_rest(const Message& message, const std::string& name) {
  const std::string field = first_set_field(message, name);
  if (field.empty()) return;
  throw UnimplementedError(
      fmt::format("{} is set, but nothing here can heed it, or not this value: leave it out", field));
}

Seconds timeout_of(int64_t milliseconds, const char* field) {
  if (milliseconds < 0) throw InvalidArgumentError(fmt::format("{} is {}, below 0", field, milliseconds));
  return Seconds{static_cast<double>(milliseconds) / 1000};
}

std::vector<std::string> checked_filters(const proto::ConfigProto& config) {
  std::vector<std::string> filters;
  for (const std::string& filter : config.device_filters()) {
    try {
      DeviceSpec::parse(filter);
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(fmt::format("ConfigProto.device_filters: {}", excerpt(error.what(), 500)));
    }
    filters.push_back(filter);
  }
  return filters;
}

std::map<std::string, std::map<int, std::string>> cluster_of(const proto::ClusterDef& cluster) {
  std::map<std::string, std::map<int, std::string>> jobs;
  for (const proto::JobDef& job : cluster.job()) {
    if (!jobs.try_emplace(job.name(), job.tasks().begin(), job.tasks().end()).second) {
      throw InvalidArgumentError(fmt::format("Duplicate job ID in cluster definition: '{}'", excerpt(job.name())));
    }
  }
  return jobs;
}

// Clears the values that ask for what is done anyway: one operation after another, the graph as it is, and no more of a
// GPU's memory than is needed.
void clear_what_is_done_anyway(proto::ConfigProto* config) {
  if (config->inter_op_parallelism_threads() == 1) config->clear_inter_op_parallelism_threads();
  auto* optimizer = config->mutable_graph_options()->mutable_optimizer_options();
  if (optimizer->opt_level() == proto::OptimizerOptions::L0) optimizer->clear_opt_level();
  if (optimizer->global_jit_level() == proto::OptimizerOptions::OFF) optimizer->clear_global_jit_level();
  config->mutable_gpu_options()->clear_allow_growth();
  if (config->experimental().executor_type() == "DEFAULT") config->mutable_experimental()->clear_executor_type();
}

void clear_what_was_taken(proto::ConfigProto* config) {
  config->clear_device_count();
  config->clear_intra_op_parallelism_threads();
  config->clear_operation_timeout_in_ms();
  config->clear_device_filters();
  config->clear_allow_soft_placement();
  config->clear_log_device_placement();
  config->clear_isolate_session_state();
  config->clear_cluster_def();
  config->mutable_rpc_options()->clear_use_rpc_for_inprocess_master();
  config->mutable_experimental()->clear_share_session_state_in_clusterspec_propagation();
}

// Also within the messages that both have.
void clear_lists_of(const Message& config, Message* defaults) {
  const auto* reflection = config.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(config, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) {
      reflection->ClearField(defaults, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      clear_lists_of(reflection->GetMessage(config, field), reflection->MutableMessage(defaults, field));
    }
  }
}

}  // namespace

SessionOptions session_options_of(const proto::ConfigProto& config) {
  SessionOptions options;
  options.device_count = {config.device_count().begin(), config.device_count().end()};
  options.intra_op_parallelism_threads = config.intra_op_parallelism_threads();
  options.operation_timeout = timeout_of(config.operation_timeout_in_ms(), "ConfigProto.operation_timeout_in_ms");
  options.device_filters = checked_filters(config);
  options.allow_soft_placement = config.allow_soft_placement();
  options.log_device_placement = config.log_device_placement();
  options.isolate_session_state = config.isolate_session_state();
  options.cluster_def = cluster_of(config.cluster_def());
  options.share_session_state_in_clusterspec_propagation =
      config.experimental().share_session_state_in_clusterspec_propagation();
  options.use_rpc_for_inprocess_master = config.rpc_options().use_rpc_for_inprocess_master();
  proto::ConfigProto rest = config;
  clear_what_was_taken(&rest);
  clear_what_is_done_anyway(&rest);
  refuse_the_rest(rest, "ConfigProto");
  return options;
}

RunOptions run_options_of(const proto::RunOptions& options) {
  RunOptions result;
  result.timeout = timeout_of(options.timeout_in_ms(), "RunOptions.timeout_in_ms");
  result.output_partition_graphs = options.output_partition_graphs();
  if (!proto::RunOptions::TraceLevel_IsValid(options.trace_level())) {
    throw InvalidArgumentError(
        fmt::format("RunOptions.trace_level is {}, which is none", static_cast<int>(options.trace_level())));
  }
  result.trace_level = static_cast<TraceLevel>(options.trace_level());
  proto::RunOptions rest = options;
  rest.clear_timeout_in_ms();
  rest.clear_output_partition_graphs();
  rest.clear_trace_level();
  if (rest.inter_op_thread_pool() == -1) rest.clear_inter_op_thread_pool();  // the caller's thread, as always
  refuse_the_rest(rest, "RunOptions");
  return result;
}

proto::ConfigProto with_defaults(const proto::ConfigProto& config, const proto::ConfigProto& defaults) {
  proto::ConfigProto merged = defaults;
  clear_lists_of(config, &merged);
  merged.MergeFrom(config);
  return merged;
}

proto::ConfigProto config_proto_of(const SessionOptions& options) {
  if (options.snapshot_memory) {
    throw UnimplementedError(
        "SessionOptions::snapshot_memory has no field in ConfigProto: leave it out here, and give it to the server");
  }
  proto::ConfigProto config;
  config.mutable_device_count()->insert(options.device_count.begin(), options.device_count.end());
  config.set_intra_op_parallelism_threads(options.intra_op_parallelism_threads);
  config.set_operation_timeout_in_ms(static_cast<int64_t>(std::ceil(options.operation_timeout.count() * 1000)));
  config.mutable_device_filters()->Assign(options.device_filters.begin(), options.device_filters.end());
  config.set_allow_soft_placement(options.allow_soft_placement);
  config.set_log_device_placement(options.log_device_placement);
  config.set_isolate_session_state(options.isolate_session_state);
  for (const auto& [name, tasks] : options.cluster_def) {
    proto::JobDef* job = config.mutable_cluster_def()->add_job();
    job->set_name(name);
    job->mutable_tasks()->insert(tasks.begin(), tasks.end());
  }
  if (options.share_session_state_in_clusterspec_propagation)
    config.mutable_experimental()->set_share_session_state_in_clusterspec_propagation(true);
  if (options.use_rpc_for_inprocess_master) config.mutable_rpc_options()->set_use_rpc_for_inprocess_master(true);
  return config;
}

SessionOptions with_defaults(const SessionOptions& options, const SessionOptions& defaults) {
  SessionOptions merged = options;
  if (merged.operation_timeout.count() <= 0) merged.operation_timeout = defaults.operation_timeout;
  if (merged.device_filters.empty()) merged.device_filters = defaults.device_filters;
  if (merged.cluster_def.empty()) merged.cluster_def = defaults.cluster_def;
  merged.allow_soft_placement |= defaults.allow_soft_placement;
  merged.log_device_placement |= defaults.log_device_placement;
  merged.isolate_session_state |= defaults.isolate_session_state;
  merged.share_session_state_in_clusterspec_propagation |= defaults.share_session_state_in_clusterspec_propagation;
  merged.use_rpc_for_inprocess_master |= defaults.use_rpc_for_inprocess_master;
  return merged;
}

void check_options_on_server(const SessionOptions& options) {
  const std::pair<const char*, bool> of_servers[] = {
      {"device_count", !options.device_count.empty()},
      {"intra_op_parallelism_threads", options.intra_op_parallelism_threads != 0},
      {"snapshot_memory", options.snapshot_memory.has_value()},
  };
  for (const auto& [name, is_set] : of_servers) {
    if (!is_set) continue;
    throw UnimplementedError(fmt::format(
        "SessionOptions::{} is set, but the server is running already: leave it out, and set it where the server is "
        "made (ServerOptions)",
        name));
  }
}

int number_of_cpus(const SessionOptions& options) {
  int cpus = 1;
  for (const auto& [type, count] : options.device_count) {
    if (type == "CPU") cpus = count;
    if (type != "CPU" && type != "GPU" && count > 0)
      throw InvalidArgumentError(fmt::format("device_count: there are no {} devices", type));
  }
  if (cpus < 1)
    throw InvalidArgumentError(fmt::format("device_count: at least one CPU device is needed, not {}", cpus));
  return cpus;
}

int most_gpus(const SessionOptions& options) {
  const auto found = options.device_count.find("GPU");
  if (found == options.device_count.end()) return std::numeric_limits<int>::max();
  if (found->second < 0)
    throw InvalidArgumentError(fmt::format("device_count: the number of GPUs is {}, below 0", found->second));
  return found->second;
}

void check_options_in_process(const SessionOptions& options) {
  const std::pair<const char*, bool> for_servers[] = {
      {"device_filters", !options.device_filters.empty()},
      {"cluster_def", !options.cluster_def.empty()},
      {"share_session_state_in_clusterspec_propagation", options.share_session_state_in_clusterspec_propagation},
      {"use_rpc_for_inprocess_master", options.use_rpc_for_inprocess_master},
  };
  for (const auto& [name, is_set] : for_servers) {
    if (!is_set) continue;
    throw UnimplementedError(fmt::format(
        "SessionOptions::{} is for sessions on servers, and this one runs in its own process (target \"\"): "
        "set the session's master to Server::target(), or leave the option out",
        name));
  }
}

}  // namespace longhaul
