#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/status/listener.h"

namespace longhaul {

// What one client may take. All of it is far more than a client of this page needs.
struct HttpLimits {
  size_t most_connections = 256;
  size_t most_head_bytes = 8192;  // of a request: its line and its headers
  Seconds head{5};                // until a request has come
  Seconds answer{30};             // until its reply is known
  Seconds write{10};              // until the client takes more of it
  double least_speed = 100e3;     // bytes a second at which it takes all, besides that time
  Seconds drain{1};               // until it closes
};

// One request of one client, on a socket that never blocks.
//
//   reading --the head is there--> answering --send--> writing --all is written--> draining --> over
//
// What follows the head is read in the end and thrown away, so that the system does not take the reply back from a
// client that sends more. One thread.
class HttpConnection {
 public:
  enum class State { kReading, kAnswering, kWriting, kDraining, kOver };

  HttpConnection(OwnedSocket socket, int64_t id, const HttpLimits& limits, Seconds now);

  State state() const { return state_; }
  int64_t id() const { return id_; }
  int fd() const { return socket_.get(); }
  short events() const;  // what to poll for
  Seconds deadline() const { return deadline_; }

  // The socket has something: reads, writes or throws away as much as there is.
  void work(Seconds now);
  void expire(Seconds now);  // its deadline has come
  // The head of the request, once: the state is kAnswering then. nullopt: not yet, or it was given.
  std::optional<std::string> take_request();
  void send(std::string reply, Seconds now);

 private:
  void read(Seconds now);
  void write(Seconds now);
  void drain();
  void enter(State state, Seconds deadline);

  OwnedSocket socket_;
  const int64_t id_;
  const HttpLimits& limits_;
  State state_ = State::kReading;
  Seconds deadline_;
  Seconds last_moment_{0};    // for the client to take more
  bool has_request_ = false;  // to be taken
  std::string head_, reply_;
  size_t written_ = 0;
};

}  // namespace longhaul
