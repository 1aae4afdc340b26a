#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/error.h"
#include "longhaul/base/mutex.h"
#include "longhaul/cluster/transport/slices.h"

namespace longhaul {

// A call of another protocol on a transport's port: bytes in, bytes out. Whoever has it may keep it and reply later,
// from any thread; if it is let go without a reply, the caller gets INTERNAL. Any thread may call.
class WireCall {
 public:
  virtual ~WireCall();

  virtual const std::string& path() const = 0;           // "/tensorflow.MasterService/CreateSession"
  virtual Slices take_request() = 0;                     // the message as it came; at most once, by the handler
  virtual std::optional<Seconds> time_left() const = 0;  // until the caller gives up; none: it has no deadline

  // The first reply or failure counts; later ones, and those to a caller that has gone, are dropped.
  virtual void reply(Slices message) = 0;
  // gRPC's status with the error's code and text. Above 2,000 bytes the text is cut, and says so: clients drop a status
  // that does not fit into 8 KiB of headers.
  virtual void fail(const Error& error) = 0;

  // Calls `gone` once, without a lock, when the caller has cancelled the call, died, or is no longer to be reached; at
  // once if it already has; never after a reply. Hold no lock that it takes.
  virtual void on_gone(std::function<void()> gone) = 0;
};

// Runs on a thread of the transport, and may not wait. What it throws fails the call.
using WireHandler = std::function<void(std::shared_ptr<WireCall>)>;

}  // namespace longhaul
