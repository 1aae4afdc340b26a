#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/cluster/wire/wire_session.h"

namespace longhaul {

// The sessions of a master, by their handles. Any thread.
class WireSessions {
 public:
  struct Options {
    size_t most = 1000;
    Seconds gc{0};  // sessions that nobody has used for so long are idle; 0: none ever is
  };
  struct Held {
    std::string handle;
    std::shared_ptr<WireSession> session;
    Seconds idle{0};
  };

  WireSessions(Clock& clock, const Options& options) : clock_(clock), options_(options) {}

  // The master must be able to take one more: ResourceExhaustedError. UnavailableError: stop.
  void check_room() EXCLUDES(mutex_);
  std::string add(std::shared_ptr<WireSession> session) EXCLUDES(mutex_);  // 16 hex digits, random

  // A session while a call uses it: it is not idle, and lives.
  class Use {
   public:
    Use(WireSessions& sessions, const std::string& handle);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    explicit operator bool() const { return session_ != nullptr; }  // false: there is none of that handle
    WireSession* operator->() const { return session_.get(); }

   private:
    WireSessions& sessions_;
    const std::string handle_;
    const std::shared_ptr<WireSession> session_;
  };

  // From here on nobody finds them; they are to be closed. take(): no session if there is none.
  std::shared_ptr<WireSession> take(const std::string& handle) EXCLUDES(mutex_);
  std::vector<Held> take_all() EXCLUDES(mutex_);
  std::vector<Held> take_idle() EXCLUDES(mutex_);                   // looks every 10 s at most; logs each
  std::vector<Held> stop(const std::string& why) EXCLUDES(mutex_);  // and takes no more

  size_t size() EXCLUDES(mutex_);

 private:
  struct Entry {
    std::shared_ptr<WireSession> session;
    int uses = 0;
    Seconds last_used{0};
  };

  void check_room_locked() REQUIRES(mutex_);
  std::vector<Held> take_idle_locked(Seconds now) REQUIRES(mutex_);
  std::shared_ptr<WireSession> begin_use(const std::string& handle) EXCLUDES(mutex_);
  void end_use(const std::string& handle) EXCLUDES(mutex_);

  Clock& clock_;
  const Options options_;
  Mutex mutex_;
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  std::string why_ GUARDED_BY(mutex_);
  Seconds next_look_ GUARDED_BY(mutex_){0};
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
