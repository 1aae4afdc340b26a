#pragma once

#include <string>
#include <vector>

struct addrinfo;

namespace longhaul {

// Sockets that listen on each of the addresses that a name has ("localhost:0": 127.0.0.1 and ::1), at one port.
// They do not block, and are closed at the end. 0.0.0.0 stands for the addresses of IPv6, too.
class ListeningSockets {
 public:
  // `address` is "HOST:PORT"; port 0: the system chooses. AlreadyExistsError: it is in use; InvalidArgumentError:
  // it is no address of this machine; PermissionDeniedError: a port below 1024; else UnavailableError. Each names
  // the address and the remedy.
  explicit ListeningSockets(const std::string& address);
  ~ListeningSockets();
  ListeningSockets(const ListeningSockets&) = delete;
  ListeningSockets& operator=(const ListeningSockets&) = delete;

  const std::vector<int>& all() const { return sockets_; }
  int port() const { return port_; }

 private:
  int listen_on_all(const addrinfo* candidate);
  void close_all();

  std::vector<int> sockets_;
  int port_ = 0;
};

}  // namespace longhaul
