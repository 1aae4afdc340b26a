#include "longhaul/grpc/server/server.h"

#include "longhaul/base/log.h"
#include "longhaul/cluster/spec/server_def.h"
#include "longhaul/grpc/server/client_transports.h"
#include "longhaul/grpc/server/local_servers.h"
#include "longhaul/grpc/transport/line_settings.h"
#include "longhaul/session/config_proto.h"

namespace longhaul {
namespace {

// What messages have no field for is given to the server separately.
proto::ConfigProto config_of(SessionOptions options) {
  options.snapshot_memory.reset();
  return config_proto_of(options);
}

std::shared_ptr<RunningServer> make_server(const proto::ServerDef& definition, const ServerOptions& options) {
  auto server = std::make_shared<RunningServer>(definition, options);
  local_servers().add(server);
  if (options.start) server->start();
  return server;
}

template <typename Definition>
std::shared_ptr<RunningServer> make_complete(const Definition& definition, const ServerOptions& options) {
  const proto::ConfigProto config = config_of(options.config);
  return make_server(
      make_server_def(definition, {.job_name = options.job_name, .task_index = options.task_index, .config = &config}),
      options);
}

}  // namespace

Server::Server(const ClusterSpec& cluster, const ServerOptions& options) : running_(make_complete(cluster, options)) {}

Server::Server(const proto::ServerDef& definition, const ServerOptions& options)
    : running_(make_complete(definition, options)) {}

// What a child has of it would wait for threads of its parent: it stays.
Server::~Server() {
  static auto* const left = new std::vector<std::shared_ptr<RunningServer>>;
  if (running_->maker().is_this()) {
    running_->stop("the server is no longer needed");
  } else {
    left->push_back(running_);
  }
}

std::unique_ptr<Server> Server::create_local_server(const SessionOptions& config, bool start) {
  return std::make_unique<Server>(local_server_def(), ServerOptions{.config = config, .start = start});
}

void Server::start() {
  running_->check_process();
  running_->start();
}

void Server::join() {
  running_->check_process();
  running_->join(std::nullopt);
}

bool Server::join(Seconds timeout) {
  running_->check_process();
  return running_->join(timeout);
}

void Server::stop() {
  running_->check_process();
  running_->stop("the program has stopped it (Server::stop)");
}

std::string Server::target() const {
  return "grpc://" + running_->address();
}

const proto::ServerDef& Server::server_def() const {
  return running_->definition();
}

void set_client_security(const TransportSecurity& security) {
  check_security(security);
  client_transports().set_security(security);
}

void set_client_lost_line(Seconds lost_line) {
  check_lost_line(lost_line, "set_client_lost_line()");
  client_transports().set_lost_line(lost_line);
}

}  // namespace longhaul
