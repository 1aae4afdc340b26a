#include "longhaul/cluster/transport/peer_watch.h"

#include <fmt/format.h>

#include <atomic>
#include <map>

#include "longhaul/cluster/transport/methods.h"

namespace longhaul {
namespace {

std::exception_ptr watch_error(const std::string& task, const CallReply& reply) {
  if (reply.error != nullptr) return reply.error;
  try {
    const auto why = header_of<proto::WatchReply>(reply.message, "Watch");
    return std::make_exception_ptr(AbortedError(fmt::format("task {} has ended its session: {}", task, why.why())));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

struct PeerWatch::State {
  std::atomic<bool> is_over = false;
};

PeerWatch::PeerWatch(Transport& transport, const std::string& task, uint64_t incarnation, const std::string& session,
                     std::function<void(std::exception_ptr)> lost, bool isolated)
    : state_(std::make_shared<State>()) {
  proto::WatchRequest request;
  request.set_session(session);
  request.set_isolated(isolated);
  call_ = transport.start(
      {.task = task, .method = methods::kWatch, .incarnation = incarnation, .message = to_message(request)},
      [state = state_, task, lost = std::move(lost)](const CallReply& reply) {
        if (!state->is_over.exchange(true)) lost(watch_error(task, reply));
      });
}

PeerWatch::~PeerWatch() {
  state_->is_over = true;
  call_->cancel("the watch has ended");
}

struct Watched::State {
  mutable Mutex mutex;
  std::multimap<std::string, std::shared_ptr<IncomingCall>> calls GUARDED_BY(mutex);

  void add(const std::string& session, const std::shared_ptr<IncomingCall>& call) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    calls.emplace(session, call);
  }

  // False: it was not there, or was ended.
  bool remove(const IncomingCall* call) EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return std::erase_if(calls, [&](const auto& entry) { return entry.second.get() == call; }) > 0;
  }

  std::vector<std::shared_ptr<IncomingCall>> take(const std::string& session) EXCLUDES(mutex) {
    std::vector<std::shared_ptr<IncomingCall>> taken;
    MutexLock lock(mutex);
    const auto [begin, end] = calls.equal_range(session);
    for (auto at = begin; at != end; ++at) taken.push_back(at->second);
    calls.erase(begin, end);
    return taken;
  }
};

Watched::Watched(Transport& transport, Gone gone, Come come) : state_(std::make_shared<State>()) {
  const auto watch = [state = state_, gone, come](std::shared_ptr<IncomingCall> call) {
    const auto request = header_of<proto::WatchRequest>(call->request(), "Watch from " + call->caller().task);
    if (come) come(call->caller(), request);
    const std::string session = request.session();
    state->add(session, call);
    call->on_gone([state, gone, session, key = call.get(), caller = call->caller()] {
      if (state->remove(key) && gone) gone(caller, session);
    });
  };
  transport.serve(methods::kWatch, watch);
}

void Watched::end(const std::string& session, const std::string& why) {
  proto::WatchReply reply;
  reply.set_why(why);
  for (const auto& call : state_->take(session)) call->reply(to_message(reply));
}

size_t Watched::watchers() const {
  MutexLock lock(state_->mutex);
  return state_->calls.size();
}

}  // namespace longhaul
