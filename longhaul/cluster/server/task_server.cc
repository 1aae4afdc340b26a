#include "longhaul/cluster/server/task_server.h"

#include "longhaul/cluster/spec/task_name.h"
#include "longhaul/cluster/tasks/session_tasks.h"
#include "longhaul/proto/cluster.pb.h"
#include "longhaul/runtime/blas_kernels.h"
#include "longhaul/runtime/memory/freed_memory.h"
#include "longhaul/runtime/threads.h"
#include "longhaul/session/config_proto.h"

namespace longhaul {
namespace {

ServerTask described(const Transport& transport, const TaskServerOptions& options) {
  return {.task = transport.task(),
          .address = address_of(options.cluster, transport.task()),
          .cluster = options.cluster,
          .defaults = session_options_of(options.config)};
}

// As for a session of this process, but in silence: a ps computes little.
void prepare_process(const SessionOptions& options) {
  prepare_intra_op_threads(options.intra_op_parallelism_threads);
  keep_freed_memory();
}

void tell_of_process() {
  set_intra_op_threads(0);  // that is set already
  warn_of_old_blas_kernels();
}

void refuse_gpus(const SessionOptions& options) {
  const auto asked = options.device_count.find("GPU");
  if (asked == options.device_count.end() || asked->second <= 0) return;
  throw InvalidArgumentError(
      "device_count: servers compute on the CPU alone. GPUs are for sessions of one process (target \"\")");
}

std::shared_ptr<TaskResources> make_resources(const ServerTask& about, const TaskServerOptions& options, Clock& clock) {
  const TaskId task = parse_task_name(about.task);
  refuse_gpus(about.defaults);
  prepare_process(about.defaults);
  TaskOptions resources = options.resources;
  resources.job = task.job;
  resources.task = task.index;
  resources.cpu_devices = number_of_cpus(about.defaults);
  resources.clock = &clock;
  return std::make_shared<TaskResources>(resources);
}

WorkerOptions worker_options(const TaskServerOptions& options) {
  WorkerOptions worker = options.worker;
  *worker.status.mutable_cluster() = options.cluster.as_cluster_def();
  proto::ConfigProto& of_sessions = *worker.status.mutable_default_session_config();
  of_sessions = options.config;
  of_sessions.clear_device_count();
  of_sessions.clear_intra_op_parallelism_threads();
  return worker;
}

}  // namespace

TaskServer::TaskServer(std::shared_ptr<Transport> transport, const TaskServerOptions& options)
    : transport_(std::move(transport)),
      about_(described(*transport_, options)),
      max_wait_(options.max_wait),
      worker_(*transport_, make_resources(about_, options, transport_->clock()), worker_options(options)) {}

TaskServer::~TaskServer() {
  stop("it is no longer needed", Seconds{10});
}

std::unique_ptr<Session> TaskServer::new_session(Graph& graph, const SessionOptions& options) {
  auto session = session_on(about_, transport_, graph, options, max_wait_);
  tell_of_process();
  return session;
}

std::vector<DeviceAttributes> TaskServer::own_devices() const {
  std::vector<DeviceAttributes> devices = resources().devices();
  for (DeviceAttributes& device : devices) device.incarnation = transport_->incarnation();
  return devices;
}

std::vector<DeviceAttributes> TaskServer::list_devices(const std::vector<std::string>& filters,
                                                       const WaitLimits& limits) {
  const auto tasks = SessionTasks::create(
      *transport_, {.home = about_.task, .tasks = task_names(about_.cluster), .device_filters = filters});
  return tasks->list_devices(limits);
}

void TaskServer::reset(const std::vector<std::string>& containers, const WaitLimits& limits) {
  reset_tasks(*transport_, task_names(about_.cluster), containers, limits);
}

bool TaskServer::stop(const std::string& why, Seconds timeout) {
  const bool has_ended = worker_.stop(why, timeout);
  transport_->stop(why);
  return has_ended;
}

}  // namespace longhaul
