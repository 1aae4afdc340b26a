#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/cluster/simulation/network_fault.h"
#include "longhaul/cluster/simulation/simulated_clock.h"
#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

class NetworkRouter;

// A network of tasks within one process, for tests: messages can be lost, doubled, delayed, lines cut, tasks killed and
// restarted. Each message arrives in no time, in the order of sending. Time is simulated (SimulatedClock): whoever
// waits on clock() delivers messages meanwhile.
//
//   SimulatedNetwork network;
//   network.on_restart([&](const std::string& task) { servers[task] = make_server(network.start(task)); });
//   network.plan({.kind = NetworkFault::Kind::kLose, .message = 3});
//   ... run a script ...
//   for (uint64_t i = 1; i <= network.sent().size(); ++i) ...  // the same again, with a fault in message i
//
// It must outlive the transports, and all threads that use them. Any thread may call.
class SimulatedNetwork {
 public:
  struct Options {
    SimulatedClock::Threads threads = SimulatedClock::Threads::kOne;
    TransportLimits limits{};
    bool through_bytes = false;  // messages are encoded and decoded, as on a real network
  };
  struct Sent {
    std::string from, to, method;
    bool is_reply = false;
    size_t tensors = 0;  // that it carries
  };

  SimulatedNetwork();
  explicit SimulatedNetwork(Options options);
  ~SimulatedNetwork();  // stops all transports

  SimulatedClock& clock();

  // A new process of the task. InvalidArgumentError: one is alive.
  std::shared_ptr<Transport> start(const std::string& task);
  // The process of the task ends: what it has not yet sent is not sent, and its transport is stopped, so that its
  // threads come to an end. Its peers notice after TransportLimits::death.
  void kill(const std::string& task);
  bool is_alive(const std::string& task) const;

  // No message passes from the one to the other. One that is sent waits; it arrives if the line is mended within
  // TransportLimits::longest_cut(), else its connection breaks, and so do those on which nothing is sent.
  void cut(const std::string& from, const std::string& to);
  void mend(const std::string& from, const std::string& to);

  void plan(const NetworkFault& fault);
  size_t faults_to_come() const;  // of the planned ones
  // Called without a lock, inside an event. `restart` is asked for by faults, and calls start().
  void on_killed(std::function<void(const std::string& task)> killed);
  void on_restart(std::function<void(const std::string& task)> restart);

  // What has been sent, without what faults have prevented or doubled.
  std::vector<Sent> sent() const;
  size_t calls(const std::string& from, const std::string& to) const;  // without replies
  size_t waiting() const;                                              // messages that wait for a line or a task

 private:
  const std::unique_ptr<NetworkRouter> router_;
};

}  // namespace longhaul
