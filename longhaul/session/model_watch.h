#pragma once

#include <functional>
#include <memory>

namespace longhaul {

// A watch on what decides whether a session's model is ready, and what other sessions may change: a variable is
// initialised, a checkpoint restored, a container reset. One thread at a time.
class ModelWatch {
 public:
  virtual ~ModelWatch() = default;

  // Whether there was a change since the last call. What is not known counts as one: the first call after the session
  // has begun to use a server returns true. AbortedError: the session is lost; CancelledError: it was closed.
  virtual bool take_change() = 0;
};

// Implemented by sessions on servers (SessionCapabilities::model_watching). Any thread.
class ModelWatching {
 public:
  virtual ~ModelWatching() = default;

  // Calls `changed` whenever take_change() may have something to tell, on any thread, perhaps inside this call. It must
  // not wait, nor use the session, and must own what it touches: it may be under way when the watch is destroyed.
  //
  //   const auto watch = watching->watch_model([coord] { coord.notify(); });  // from here on nothing is missed
  //   while (!is_ready(session)) coord.wait_for_stop_or([&] { return watch->take_change(); }, look_again);
  virtual std::unique_ptr<ModelWatch> watch_model(std::function<void()> changed) = 0;
};

}  // namespace longhaul
