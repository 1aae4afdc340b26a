#pragma once

#include <optional>
#include <string>

#include "longhaul/status/listen_address.h"

namespace longhaul {

// A descriptor with one owner.
class OwnedSocket {
 public:
  explicit OwnedSocket(int fd = -1) : fd_(fd) {}
  OwnedSocket(OwnedSocket&& other) noexcept : fd_(other.release()) {}
  OwnedSocket& operator=(OwnedSocket&& other) noexcept;
  ~OwnedSocket() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset();

 private:
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

  int fd_;
};

// A port on which a process listens. One thread.
class Listener {
 public:
  // Throws what the system says: UnavailableError for a port that another process has, with its number and the remedy.
  explicit Listener(const ListenAddress& address);

  int fd() const { return socket_.get(); }
  int port() const { return port_; }

  // A connection that waits; not open: none does. ResourceExhaustedError: the process has no descriptor left for it.
  OwnedSocket next_client();

 private:
  OwnedSocket socket_;
  int port_ = 0;
};

}  // namespace longhaul
