#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/status/listener.h"

namespace longhaul {

// Replies that other threads have made, for the one that polls. Any thread may call.
class ReplyBox {
 public:
  ReplyBox();  // what the system throws: there is no descriptor for it

  struct Reply {
    int64_t connection;
    std::string text;
  };

  int fd() const { return event_.get(); }  // can be read when there is news
  void put(Reply reply) EXCLUDES(mutex_);
  std::vector<Reply> take() EXCLUDES(mutex_);
  void wake() const;

 private:
  const OwnedSocket event_;
  Mutex mutex_;
  std::vector<Reply> replies_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
