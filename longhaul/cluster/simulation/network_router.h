#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/cluster/simulation/simulated_network.h"
#include "longhaul/cluster/simulation/simulated_process.h"

namespace longhaul {

// What happens on the lines of a simulated network: counts the messages, applies the faults, delivers or breaks.
// Nothing is called under its lock.
class NetworkRouter {
 public:
  using Told = std::function<void(const std::string& task)>;

  explicit NetworkRouter(SimulatedNetwork::Options options) : options_(options), clock_(options.threads) {}

  SimulatedClock& clock() { return clock_; }
  std::string address_of(const std::string& task) const EXCLUDES(mutex_);
  std::string task_at(const std::string& called) const EXCLUDES(mutex_);  // a name, or an address; as it is: nobody's

  void add(const std::shared_ptr<SimulatedProcess>& process) EXCLUDES(mutex_);
  std::shared_ptr<SimulatedProcess> living(const std::string& task) const EXCLUDES(mutex_);
  std::vector<std::shared_ptr<SimulatedProcess>> processes() const EXCLUDES(mutex_);
  void kill(const std::string& task) EXCLUDES(mutex_);
  void tell(Told killed, Told restart) EXCLUDES(mutex_);  // an empty one changes nothing

  void cut(const std::string& from, const std::string& to) EXCLUDES(mutex_);
  void mend(const std::string& from, const std::string& to) EXCLUDES(mutex_);
  void plan(const NetworkFault& fault) EXCLUDES(mutex_);
  size_t faults_to_come() const EXCLUDES(mutex_);

  void add_call(const std::shared_ptr<SimulatedCall>& call) EXCLUDES(mutex_);
  void transmit(const std::shared_ptr<Packet>& packet) EXCLUDES(mutex_);
  void tell_given_up(const std::shared_ptr<SimulatedCall>& call);

  std::vector<SimulatedNetwork::Sent> sent() const EXCLUDES(mutex_);
  size_t waiting() const EXCLUDES(mutex_);

 private:
  using Line = std::pair<std::string, std::string>;
  using Calls = std::vector<std::shared_ptr<SimulatedCall>>;
  struct Planned {
    NetworkFault fault;
    uint64_t seen = 0;  // messages of its kind
    bool has_come = false;
  };

  bool is_due(Planned& planned) REQUIRES(mutex_);  // with the message that was sent last

  std::vector<NetworkFault> count(const Packet& packet) EXCLUDES(mutex_);        // returns its faults
  bool apply(const NetworkFault& fault, const std::shared_ptr<Packet>& packet);  // false: it is not sent now
  void arrive(const std::shared_ptr<Packet>& packet);
  void deliver(const std::shared_ptr<Packet>& packet, const std::shared_ptr<SimulatedProcess>& to);
  void hold(const std::shared_ptr<Packet>& packet, Seconds limit) EXCLUDES(mutex_);
  void retry_waiting() EXCLUDES(mutex_);
  void kill_for(const std::string& task, Seconds time);
  void cut_for(const std::string& from, const std::string& to, Seconds time);
  bool is_cut(const std::string& from, const std::string& to) const EXCLUDES(mutex_);
  void break_if_silent(const std::shared_ptr<SimulatedCall>& call);  // later, if its line is cut until then
  Calls open_calls() EXCLUDES(mutex_);

  const SimulatedNetwork::Options options_;
  SimulatedClock clock_;
  mutable Mutex mutex_;
  std::map<std::string, std::string> addresses_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<SimulatedProcess>> processes_ GUARDED_BY(mutex_);  // the dead ones, too
  std::vector<std::weak_ptr<SimulatedCall>> calls_ GUARDED_BY(mutex_);
  std::map<Line, uint64_t> cuts_ GUARDED_BY(mutex_);  // a number for each cut
  uint64_t last_cut_ GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Packet>> waiting_ GUARDED_BY(mutex_);
  std::vector<Planned> faults_ GUARDED_BY(mutex_);
  std::vector<SimulatedNetwork::Sent> sent_ GUARDED_BY(mutex_);
  Told killed_ GUARDED_BY(mutex_);
  Told restart_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
