#include "longhaul/cluster/worker/shard_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/cluster/shards/shard_file.h"
#include "longhaul/cluster/shards/taken_value.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/worker/session_calls.h"
#include "longhaul/session/task_snapshots.h"

namespace longhaul {
namespace {

template <typename Request>
Request shard_request(const IncomingCall& call) {
  return header_of<Request>(call.request(), fmt::format("{} from {}", call.method(), call.caller().task));
}

void check_session(WorkerState& worker, const WorkerSession& session) {
  session.state()->cancellation().check_aborted();
  if (worker.sessions.has_ended(session)) throw AbortedError("the session " + session.id() + " has ended here");
}

// Renews the lease.
TakenValues held_values(WorkerState& worker, WorkerSession& session, const std::string& snapshot) {
  check_session(worker, session);
  if (auto taken = session.taken(snapshot, worker.options.taken)) return *std::move(taken);
  throw AbortedError(fmt::format(
      "the snapshot {} is no longer held here: it was released, or its lease has ended. Take another", snapshot));
}

const Tensor& value_of(const TakenValues& taken, const std::string& name) {
  const auto found = std::find(taken.names.begin(), taken.names.end(), name);
  if (found != taken.names.end()) return taken.values.at(static_cast<size_t>(found - taken.names.begin()));
  throw InvalidArgumentError(fmt::format("the snapshot has no value {} here", name));
}

// ---- DescribeTaken, ReadTaken ----

void describe_taken(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = shard_request<proto::DescribeTakenRequest>(*call);
  const auto session = worker->sessions.find(request.session(), call->caller());
  hand_over(worker, call, [worker, session, request](IncomingCall& asked) {
    const TakenValues taken = held_values(*worker, *session, request.snapshot());
    proto::DescribeTakenReply reply;
    std::vector<Tensor> samples;
    for (size_t i = 0; i < taken.names.size(); ++i) {
      if (!taken.values[i].defined()) throw InvalidArgumentError(taken.names[i] + " is not a tensor");
      check_session(*worker, *session);
      *reply.add_value() = described(taken.names[i], taken.values[i], request.checksums());
      samples.push_back(sample_of(taken.values[i]));
    }
    asked.reply(to_message(reply, std::move(samples)));
  });
}

void read_taken(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = shard_request<proto::ReadTakenRequest>(*call);
  const auto session = worker->sessions.find(request.session(), call->caller());
  hand_over(worker, call, [worker, session, request](IncomingCall& asked) {
    const TakenValues taken = held_values(*worker, *session, request.snapshot());
    const Tensor piece = piece_of(request.name(), value_of(taken, request.name()), request.first(), request.count());
    asked.reply(to_message(proto::ReadTakenReply(), {piece}));
  });
}

// ---- WriteShard ----

proto::WriteShardReply write_shard_of(WorkerState& worker, WorkerSession& session,
                                      const proto::WriteShardRequest& request) {
  const TakenValues taken = held_values(worker, session, request.snapshot());
  std::vector<Tensor> values;
  for (const std::string& name : request.name()) values.push_back(value_of(taken, name));
  return write_shard_file(worker.resources->files(),
                          {.path = request.path(),
                           .max_bytes_per_second = request.max_bytes_per_second(),
                           .clock = &worker.clock(),
                           .before_piece = [&] { held_values(worker, session, request.snapshot()); }},
                          values);
}

void write_and_answer(WorkerState& worker, WorkerSession& session, const proto::WriteShardRequest& request) {
  try {
    worker.shard_writes.end(request.path(), to_message(write_shard_of(worker, session, request)), nullptr);
  } catch (...) {
    worker.shard_writes.end(request.path(), {}, std::current_exception());
  }
}

void write_shard(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = shard_request<proto::WriteShardRequest>(*call);
  const auto session = worker->sessions.find(request.session(), call->caller());
  if (!worker->shard_writes.begin(request.path(), call)) return;
  try {
    worker->threads.start([worker, session, request] { write_and_answer(*worker, *session, request); });
  } catch (...) {
    worker->shard_writes.end(request.path(), {}, std::current_exception());
  }
}

// ---- LookAtFile ----

void look(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = shard_request<proto::LookAtFileRequest>(*call);
  const auto session = worker->sessions.find(request.session(), call->caller());
  hand_over(worker, call, [worker, session, request](IncomingCall& asked) {
    FileSystem& files = worker->resources->files();
    proto::LookAtFileReply seen = look_at_file(files, request.path(), [&] { check_session(*worker, *session); });
    if (request.to_write() && seen.is_there()) seen.set_why_read_only(why_read_only(files, request.path()));
    asked.reply(to_message(seen));
  });
}

}  // namespace

void serve_shards(const std::shared_ptr<WorkerState>& worker) {
  const auto serve = [&](const char* method, auto* handler) {
    worker->transport.serve(method, [worker, handler](std::shared_ptr<IncomingCall> call) { handler(worker, call); });
  };
  serve(methods::kDescribeTaken, describe_taken);
  serve(methods::kReadTaken, read_taken);
  serve(methods::kWriteShard, write_shard);
  serve(methods::kLookAtFile, look);
}

}  // namespace longhaul
