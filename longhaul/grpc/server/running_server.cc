#include "longhaul/grpc/server/running_server.h"

#include <fmt/format.h>

#include <csignal>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/cluster/spec/server_def.h"
#include "longhaul/cluster/spec/task_address.h"
#include "longhaul/cluster/transport/wire_call.h"
#include "longhaul/grpc/transport/line_settings.h"
#include "longhaul/io/files/rooted_files.h"
#include "longhaul/train/signals/stop_signals.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestStop{10};

// Slurm's SIGUSR1, too, comes to each process of a job.
std::vector<int> signals_of_schedulers() {
  std::vector<int> signals = stopping_signals();
  signals.push_back(SIGUSR1);
  return signals;
}

WaitLimits soon() {
  return {.deadline = Clock::real().now() + Seconds{10}};
}

std::string where_to_listen(const proto::ServerDef& definition, const ServerOptions& options) {
  if (!options.listen.empty()) return options.listen;
  TaskAddress own = TaskAddress::parse(own_address(definition));
  if (own.host == "localhost") own.host = "127.0.0.1";
  return own.to_string();
}

std::map<std::string, std::string> addresses_of(const ClusterSpec& cluster) {
  std::map<std::string, std::string> addresses;
  for (const std::string& task : task_names(cluster)) addresses[task] = address_of(cluster, task);
  return addresses;
}

std::shared_ptr<GrpcTransport> listening(const proto::ServerDef& definition, const ServerOptions& options) {
  const std::string task = task_name(own_task(definition)), listen = where_to_listen(definition, options);
  check_grpc_may_be_used(fmt::format("a server of {}", task));
  check_lost_line(options.lost_line, "ServerOptions::lost_line of " + task);
  return GrpcTransport::create({.task = task,
                                .listen = listen,
                                .addresses = addresses_of(ClusterSpec(definition.cluster())),
                                .security = options.security,
                                .limits = {.lost_line = options.lost_line}});
}

// Its entry in the cluster, with the port that it has got.
std::string reached_at(const proto::ServerDef& definition, int port) {
  TaskAddress own = TaskAddress::parse(own_address(definition));
  if (own.port == 0) own.port = port;
  return own.to_string();
}

ClusterSpec cluster_with(const std::string& own_address, const proto::ServerDef& definition) {
  ClusterSpec::TasksOfJobs tasks = ClusterSpec(definition.cluster()).tasks();
  tasks.at(definition.job_name()).at(definition.task_index()) = own_address;
  std::map<std::string, JobTasks> jobs;
  for (const auto& [job, addresses] : tasks) jobs.emplace(job, JobTasks(addresses));
  return ClusterSpec(jobs);
}

std::shared_ptr<FileSystem> rooted_files(const proto::ServerDef& definition, const ServerOptions& options) {
  const TaskAddress listen = TaskAddress::parse(where_to_listen(definition, options));
  if (options.file_roots.empty() && is_loopback_host(listen.host)) return nullptr;
  return std::make_shared<RootedFiles>(FileSystem::real(), options.file_roots);
}

}  // namespace

RunningServer::RunningServer(const proto::ServerDef& definition, const ServerOptions& options)
    : stop_grace_(options.stop_grace),
      stops_with_chief_(options.stop_with_chief),
      definition_(definition),
      rooted_files_(rooted_files(definition, options)),
      transport_(listening(definition, options)),
      address_(reached_at(definition, transport_->port())) {
  const proto::ConfigProto& config = definition.default_session_config();
  TaskOptions resources{.snapshot_memory = options.config.snapshot_memory};
  if (rooted_files_ != nullptr) resources.files = rooted_files_.get();
  TaskServerOptions task{.cluster = cluster_with(address_, definition), .config = config, .resources = resources};
  task.worker.training_ended = [training = training_](const std::string& chief) {
    training->cancel(chief + " has ended the training");
  };
  task_ = std::make_shared<TaskServer>(transport_, task);
  service_ = std::make_shared<MasterService>(service_options(config));
  // The transport keeps the files as long as what it has been told to serve, which may use them.
  const auto handle = [service = service_, files = rooted_files_](std::shared_ptr<WireCall> call) {
    service->handle(std::move(call));
  };
  for (const char* prefix : {MasterService::kPrefix, MasterService::kWorkerPrefix})
    transport_->serve_wire(prefix, handle);
}

// The service may outlive the task, whose transport keeps it.
MasterServiceOptions RunningServer::service_options(const proto::ConfigProto& config) const {
  const auto living = [weak = std::weak_ptr<TaskServer>(task_)] {
    if (auto task = weak.lock()) return task;
    throw UnavailableError("the server has stopped");
  };
  MasterServiceOptions options;
  options.new_session = [living](Graph& graph, const SessionOptions& asked) {
    return living()->new_session(graph, asked);
  };
  options.list_devices = [living] { return living()->list_devices({}, soon()); };
  options.own_devices = [living] { return living()->own_devices(); };
  options.reset = [living](const std::vector<std::string>& containers) { living()->reset(containers, soon()); };
  options.default_config = config;
  return options;
}

RunningServer::~RunningServer() {
  stop("the server is no longer needed");
}

void RunningServer::start() {
  {
    MutexLock lock(mutex_);
    if (state_ == State::kStarted) return;
    if (state_ != State::kNew) throw FailedPreconditionError("Server has stopped.");
    state_ = State::kStarted;
  }
  transport_->begin();
  log_info("Started server with target: grpc://{}", address_);
}

bool RunningServer::join(std::optional<Seconds> timeout) {
  {
    MutexLock lock(mutex_);
    if (state_ == State::kNew) throw FailedPreconditionError("a server is joined that was not started: call start()");
  }
  std::unique_ptr<StopSignals> signals;
  try {
    signals = std::make_unique<StopSignals>([this](int) { interrupt(); }, signals_of_schedulers());
  } catch (const FailedPreconditionError&) {
    // The program has its own.
  }
  std::optional<Cancellation::Watch> end;
  if (stops_with_chief_) end.emplace(*training_, [this] { interrupt(); });
  const bool is_over = is_over_within(timeout);
  end.reset();
  if (!is_over) return false;
  const int signal = signals != nullptr ? signals->signal_received() : 0;
  if (signal != 0) let_others_save(signal);
  if (signal == 0 && stops_with_chief_ && training_->cancelled()) let_others_end();
  stop(signal != 0 ? "its process got " + signal_name(signal) : "it was joined");
  return true;
}

// The last third is for the stop itself.
void RunningServer::let_others_save(int signal) {
  Clock& clock = Clock::real();
  const Seconds most = stop_grace_.after(signal, clock.wall_time()).length * 2 / 3, until = clock.now() + most;
  const size_t told = task_->announce_stop(most);
  if (told == 0) return;
  log_warning("the server at {} got {}: it continues for {:.3g} s at most, while {} sessions save the model", address_,
              signal_name(signal), most.count(), told);
  task_->wait_until_unused(until);  // stop(), too, ends the sessions
}

// The chief's own ends at once; those of slower workers are to make their last steps.
void RunningServer::let_others_end() {
  constexpr Seconds kLastSteps{30};
  log_info("the server at {} ends with the chief's training, once its sessions have ended, in {:.3g} s at most",
           address_, kLastSteps.count());
  task_->wait_until_unused(Clock::real().now() + kLastSteps);
}

bool RunningServer::is_over_within(std::optional<Seconds> timeout) {
  constexpr Seconds kHour{3600};
  Clock& clock = Clock::real();
  const Seconds until = clock.now() + timeout.value_or(Seconds{0});
  MutexLock lock(mutex_);
  while (state_ != State::kStopped && !is_interrupted_ && (!timeout || clock.now() < until)) {
    clock.wait_until(changed_, mutex_, timeout ? until : clock.now() + kHour);  // wait: for stop(), or a signal
  }
  return state_ == State::kStopped || is_interrupted_;
}

void RunningServer::interrupt() {
  MutexLock lock(mutex_);
  is_interrupted_ = true;
  changed_.notify_all();
}

// Of two threads that stop it, one does and the other waits.
void RunningServer::stop(const std::string& why) {
  {
    Clock& clock = Clock::real();
    const Seconds until = clock.now() + 2 * kLongestStop;
    MutexLock lock(mutex_);
    while (state_ == State::kStopping && clock.now() < until) {
      clock.wait_until(changed_, mutex_, until);  // wait: for the thread that stops it, which takes kLongestStop
    }
    if (state_ == State::kStopped || state_ == State::kStopping) return;
    state_ = State::kStopping;
  }
  end_service(why);
  MutexLock lock(mutex_);
  state_ = State::kStopped;
  changed_.notify_all();
}

bool RunningServer::is_stopped() const {
  MutexLock lock(mutex_);
  return state_ == State::kStopping || state_ == State::kStopped;
}

void RunningServer::end_service(const std::string& why) {
  const bool clients_end = service_->stop(why, kLongestStop / 2);
  const bool steps_end = task_->stop(why, kLongestStop / 2);
  if (clients_end && steps_end) return;
  log_error("the server at {} was stopped, but a call or a step on it has not ended in {:.3g} s, and is left behind",
            address_, kLongestStop.count());
}

}  // namespace longhaul
