#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace longhaul::testing {

// Machines on one network, each a network namespace with a line to a switch (veth pairs and a bridge), so that lines
// can be cut as those between real machines: packets vanish, and nobody is told.
//
//   NetworkNamespaces network({"worker-1", "ps-1"});
//   network.on("ps-1", [&] { server = std::make_unique<Process>(...); });  // listens on network.host("ps-1")
//   network.cut("ps-1");
//   network.mend("ps-1");
//
// The constructor moves the calling thread into a namespace of its own, in which the switch is; the interfaces,
// addresses and routes of the system stay as they are. The thread does not come back: the next object makes a new one.
// No namespace has a name: each ends with the last process and the last descriptor in it, however the test ends. Where
// that needs a namespace of users, the process must have one thread when the first object is made. One thread.
class NetworkNamespaces {
 public:
  // What this system lacks for that; empty: nothing. A process of its own tries.
  static std::string missing();

  // Names of at most 15 letters, which are the names of the lines' ends at the switch too. std::system_error: refused.
  explicit NetworkNamespaces(const std::vector<std::string>& machines);
  ~NetworkNamespaces();
  NetworkNamespaces(const NetworkNamespaces&) = delete;
  NetworkNamespaces& operator=(const NetworkNamespaces&) = delete;

  std::string host(const std::string& machine) const { return machines_.at(machine).host; }
  // Processes that the function starts are on that machine.
  void on(const std::string& machine, const std::function<void()>& function) const;

  // Nothing reaches the machine, and nothing that it sends reaches others.
  void cut(const std::string& machine) const;
  // What it sends reaches others, but nothing reaches it.
  void deafen(const std::string& machine) const;
  void mend(const std::string& machine) const;  // ends both

 private:
  struct Machine {
    int space = -1;  // descriptor
    std::string host;
  };
  void add(const std::string& name, int number);

  const int switch_;  // the namespace of the switch
  std::map<std::string, Machine> machines_;
};

}  // namespace longhaul::testing
