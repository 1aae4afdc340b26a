#pragma once

#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/cluster/transport/incoming_call.h"

namespace longhaul {

// The data files that a task is writing, by their paths: a call that is repeated, because its line broke or because it
// was sent twice, is the same call and gets the same answer. Any thread may call.
//
//   new --begin--> under way --end--> over, for as long as it is among the last
class ShardWrites {
 public:
  using Call = std::shared_ptr<IncomingCall>;

  // True: the caller is to write the file, and then calls end(). False: the call is answered when somebody else has
  // written it, or has been already.
  bool begin(const std::string& path, const Call& call) EXCLUDES(mutex_);

  // Answers all calls for it; with an error, if there is one.
  void end(const std::string& path, const Message& reply, std::exception_ptr error) EXCLUDES(mutex_);

 private:
  struct Write {
    std::vector<Call> waiting;
    bool is_over = false;
    Message reply;
    std::exception_ptr error;
  };

  static void answer(IncomingCall& call, const Message& reply, const std::exception_ptr& error);

  Mutex mutex_;
  std::map<std::string, Write> writes_ GUARDED_BY(mutex_);
  std::deque<std::string> over_ GUARDED_BY(mutex_);  // the last of them
};

}  // namespace longhaul
