#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/cluster/spec/cluster_spec.h"
#include "longhaul/session/session.h"

namespace longhaul {

class RunningServer;

namespace proto {
class ServerDef;
}

inline constexpr Seconds kDefaultLostLine{2.4};

// How a task serves its cluster.
struct ServerOptions {
  std::optional<std::string> job_name{};  // may be left out if the cluster has one job
  std::optional<int> task_index{};        // may be left out if the job has one task
  // The task's devices (device_count), threads and snapshot_memory; and what the sessions on it leave out. Lists that a
  // session has itself replace these.
  SessionOptions config{};
  // Where it listens, if not at its own address in the cluster: "0.0.0.0:2222", for a machine that others reach by an
  // address which is not its own.
  std::string listen{};
  TransportSecurity security{};
  // The directories below which operations of sessions may read and write files. None: all files if only this machine
  // can reach the server, and no files otherwise.
  std::vector<std::string> file_roots{};
  bool start = true;  // false: start() begins to answer
  // The time from SIGTERM until the kill, of which join() leaves two thirds to those that save what the task has of the
  // model. Absent: LONGHAUL_PREEMPTION_GRACE, or 30 s.
  std::optional<Seconds> stop_grace{};
  // join() also ends once the chief has ended its training for good: not when the chief is lost, fails, is preempted or
  // restarts. The sessions of others then have 30 s for their last steps. For ps tasks, whose join() would wait for a
  // signal otherwise. The chief's session must be a Supervisor's managed_session() or a MonitoredSession, and use the
  // server.
  bool stop_with_chief = false;
  // How long the peer of a connection may take to answer whether it is alive, which it is asked after a second without
  // a byte. After this time the connection counts as lost, and so do the sessions that use it; a shorter pause of a
  // process or of the network loses nothing. 0.1 s to an hour. Both ends ask: the shorter time decides, so give all
  // tasks the same.
  Seconds lost_line = kDefaultLostLine;
};

// A task of a cluster that serves the sessions of all its tasks, and of clients (`tf.train.Server`). It keeps the
// variables, queues and tables that are placed on it, which outlive sessions. A ps does nothing else; a worker makes
// sessions on its own server, which calls the others.
//
//   const ClusterSpec cluster({{"ps", {"ps0:2222"}}, {"worker", {"worker0:2222", "worker1:2222"}}});
//   Server server(cluster, {.job_name = job, .task_index = index});
//   if (job == "ps") server.join();
//   const auto session = new_session(server.target(), graph);
//
// It listens on 127.0.0.1 if its address in the cluster is "localhost"; on other addresses of the machine only with
// TransportSecurity, because whoever can call it can run what he likes.
//
//   new --start--> started --stop--> stopped
//     \------------- stop -------------/
//
// A forked child must not use it: FailedPreconditionError. Any thread may call.
class Server {
 public:
  // Listens at once. InvalidArgumentError: the cluster, the job or the task is malformed or missing; its address is
  // none of this machine; the config or lost_line is malformed. AlreadyExistsError: the port is in use.
  // PermissionDeniedError: it would listen to strangers (the message has the lines to add). NotFoundError: there is no
  // such protocol, or file.
  explicit Server(const ClusterSpec& cluster, const ServerOptions& options = {});
  // The options add to the definition.
  explicit Server(const proto::ServerDef& definition, const ServerOptions& options = {});
  ~Server();  // stop()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // A server on its own: of the cluster {"local": ["localhost:0"]}.
  static std::unique_ptr<Server> create_local_server(const SessionOptions& config = {}, bool start = true);

  // Answers from now on. May be called again. FailedPreconditionError "Server has stopped."
  void start();

  // Waits until it is stopped, or the chief has ended its training (stop_with_chief). While it waits, SIGINT, SIGTERM,
  // SIGHUP and SIGUSR1 stop it, unless the program has its own StopSignals or Preemption. Chiefs that use it are
  // notified, so that they save the model: the server continues until their sessions and all others have ended, or two
  // thirds of the time of ServerOptions::stop_grace are over; a second signal ends the process.
  // FailedPreconditionError: it was not started.
  void join();
  bool join(Seconds timeout);  // false: neither a signal nor stop() came in this time

  // Ends all sessions on it; variables are gone, and sessions of others that use it get AbortedError. Takes 10 s at
  // most; a step that does not end until then is left behind, and logged. May be called again. The port is free once
  // this object, and the sessions that this process has made on it, are destroyed.
  void stop();

  std::string target() const;  // "grpc://localhost:41231", for new_session() in any process; its port is the real one
  const proto::ServerDef& server_def() const;

 private:
  const std::shared_ptr<RunningServer> running_;
};

// How this process proves who it is to servers in other processes, for sessions whose server is elsewhere
// ("grpc://worker0:2222"). For sessions that are made from now on. Until it is called: by nothing, which servers accept
// on loopback. Throws what check_security() throws.
void set_client_security(const TransportSecurity& security);

// ServerOptions::lost_line of this process's own connections to such servers, for sessions that are made from now on.
// InvalidArgumentError: it is not from 0.1 s to an hour.
void set_client_lost_line(Seconds lost_line);

}  // namespace longhaul
