#include "longhaul/cluster/shards/shard_writes.h"

#include <utility>

namespace longhaul {

bool ShardWrites::begin(const std::string& path, const Call& call) {
  Message reply;
  std::exception_ptr error;
  {
    const MutexLock lock(mutex_);
    const auto [found, is_new] = writes_.try_emplace(path);
    if (is_new || !found->second.is_over) {
      found->second.waiting.push_back(call);
      return is_new;
    }
    reply = found->second.reply;
    error = found->second.error;
  }
  answer(*call, reply, error);
  return false;
}

void ShardWrites::end(const std::string& path, const Message& reply, std::exception_ptr error) {
  constexpr size_t kMostKept = 100;
  std::vector<Call> waiting;
  {
    const MutexLock lock(mutex_);
    Write& write = writes_[path];
    waiting = std::exchange(write.waiting, {});
    write = {.waiting = {}, .is_over = true, .reply = reply, .error = error};
    over_.push_back(path);
    if (over_.size() > kMostKept) {
      writes_.erase(over_.front());
      over_.pop_front();
    }
  }
  for (const Call& call : waiting) answer(*call, reply, error);
}

void ShardWrites::answer(IncomingCall& call, const Message& reply, const std::exception_ptr& error) {
  if (error != nullptr) {
    call.fail(error);
  } else {
    call.reply(reply);
  }
}

}  // namespace longhaul
