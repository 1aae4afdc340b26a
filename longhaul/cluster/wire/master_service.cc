#include "longhaul/cluster/wire/master_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/cluster/wire/master_calls.h"

namespace longhaul {
namespace {

[[noreturn]] void refuse_path(const std::string& path) {
  const bool is_workers = path.starts_with(MasterService::kWorkerPrefix);
  throw UnimplementedError(fmt::format(
      "{}: {}", excerpt(path),
      is_workers ? "of TensorFlow's worker protocol only GetStatus is served, since the tasks of a cluster have one of "
                   "their own: use the MasterService of this server"
                 : "there is no such method"));
}

void check_time(const ClientCall& client, Clock& clock) {
  if (client.deadline.count() == 0 || clock.now() < client.deadline) return;
  throw DeadlineExceededError(
      fmt::format("{}: Deadline Exceeded: the call has waited for its turn for too long", client.call->path()));
}

void answer(MasterState& state, const ClientCall& client, MasterMethod method) {
  if (client.end->cancelled()) return;
  try {
    close_sessions(state, state.sessions.take_idle());
    check_time(client, *state.options.clock);
    method(state, client);
  } catch (const Error& error) {
    client.call->fail(error);
  } catch (const std::exception& error) {
    client.call->fail(InternalError(fmt::format("{}: {}", client.call->path(), error.what())));
  }
}

ClientCall begin_call(const std::shared_ptr<WireCall>& call, Clock& clock) {
  ClientCall client{.call = call, .end = std::make_shared<Cancellation>()};
  if (const auto left = call->time_left()) client.deadline = clock.now() + *left;
  call->on_gone([end = client.end, path = call->path()] {
    end->cancel(fmt::format("{}: the client has gone, or no longer waits for the answer", path));
  });
  return client;
}

}  // namespace

MasterService::MasterService(MasterServiceOptions options)
    : state_(std::make_shared<MasterState>(std::move(options))) {}

MasterService::~MasterService() {
  state_->request_stop("its server has ended");
}

void MasterService::handle(std::shared_ptr<WireCall> call) {
  try {
    const MasterMethod method = master_method(call->path());
    if (method == nullptr) refuse_path(call->path());
    const ClientCall client = begin_call(call, *state_->options.clock);
    JobThreads& threads = ends_runs(method) ? state_->closing : state_->threads;
    threads.start([state = state_, client, method] { answer(*state, client, method); });
  } catch (const Error& error) {
    call->fail(error);
  }
}

bool MasterService::stop(const std::string& why, Seconds timeout) {
  Clock& clock = *state_->options.clock;
  const Seconds end = clock.now() + timeout;
  state_->request_stop(why);
  close_sessions(*state_, state_->sessions.stop(why), timeout);
  const auto left = [&] { return std::max(Seconds{0}, end - clock.now()); };
  const bool runs_have_ended = state_->threads.stop(left());
  return state_->closing.stop(left()) && runs_have_ended;
}

size_t MasterService::sessions() const {
  return state_->sessions.size();
}

}  // namespace longhaul
