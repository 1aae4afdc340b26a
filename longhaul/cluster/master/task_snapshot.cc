#include "longhaul/cluster/master/task_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "longhaul/base/error.h"
#include "longhaul/cluster/master/renewed_calls.h"
#include "longhaul/cluster/transport/methods.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestCall{600};
constexpr double kSlowestDisk = 1 << 20;  // bytes per second

Shape shape_of_value(const proto::TakenValue& value) {
  std::vector<int64_t> dims;
  for (const auto& dim : value.shape().dim()) dims.push_back(dim.size());
  return Shape(std::move(dims));
}

[[noreturn]] void refuse_description(const std::string& task) {
  throw InternalError(task + " describes other values than the snapshot took there");
}

}  // namespace

SnapshotOnTasks::SnapshotOnTasks(std::shared_ptr<SessionTasks> tasks, std::unique_ptr<TakenSnapshot> taken,
                                 const StreamLimits& streaming)
    : tasks_(std::move(tasks)), taken_(std::move(taken)), streaming_(streaming), values_(taken_->values().size()) {
  describe(/*checksums=*/false);
}

SnapshotOnTasks::~SnapshotOnTasks() = default;

std::vector<uint32_t> SnapshotOnTasks::checksums() {
  return describe(/*checksums=*/true);
}

// A fetch that is named twice is described twice, with the same words.
std::vector<uint32_t> SnapshotOnTasks::describe(bool checksums) {
  std::set<std::string> places;
  for (const TakenSnapshot::Value& value : taken_->values()) places.insert(value.task);
  const std::vector<std::string> on(places.begin(), places.end());
  proto::DescribeTakenRequest request;
  request.set_session(tasks_->session());
  request.set_snapshot(taken_->id());
  request.set_checksums(checksums);
  std::vector<uint32_t> crcs(values_.size());
  with_losses_told(*tasks_, [&] {
    RenewedCalls calls(*tasks_, *taken_);
    for (const std::string& task : on) calls.start(task, methods::kDescribeTaken, to_message(request), kLongestCall);
    for (size_t i = 0; i < on.size(); ++i) {
      const CallGroup::Ended ended = calls.next();
      const Message& reply = ended.reply.message;
      const auto described = header_of<proto::DescribeTakenReply>(reply, "DescribeTaken");
      if (static_cast<size_t>(described.value_size()) != reply.tensors.size()) refuse_description(on[ended.call]);
      note(on[ended.call], described, reply.tensors, crcs);
    }
  });
  return crcs;
}

void SnapshotOnTasks::note(const std::string& task, const proto::DescribeTakenReply& described,
                           const std::vector<Tensor>& samples, std::vector<uint32_t>& crcs) {
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < samples.size(); ++i) by_name[described.value(static_cast<int>(i)).name()] = i;
  for (size_t i = 0; i < values_.size(); ++i) {
    const TakenSnapshot::Value& wanted = taken_->values()[i];
    if (wanted.task != task) continue;
    const auto found = by_name.find(wanted.name);
    if (found == by_name.end()) refuse_description(task);
    const proto::TakenValue& value = described.value(static_cast<int>(found->second));
    if (!is_known_dtype(value.dtype()) || shape_of_value(value).num_elements() < 0) refuse_description(task);
    values_[i] = {task, static_cast<DType>(value.dtype()), shape_of_value(value), value.stored_bytes(),
                  samples[found->second]};
    crcs[i] = value.crc32c();
  }
}

std::vector<WrittenShard> SnapshotOnTasks::write(const std::vector<ShardToWrite>& shards) {
  std::vector<WrittenShard> written(shards.size());
  with_losses_told(*tasks_, [&] {
    RenewedCalls calls(*tasks_, *taken_);
    for (const ShardToWrite& shard : shards)
      calls.start(shard.task, methods::kWriteShard, to_message(request_for(shard)), longest_write(shard));
    for (size_t i = 0; i < shards.size(); ++i) {
      const CallGroup::Ended ended = calls.next();
      written[ended.call] =
          checked(shards[ended.call], header_of<proto::WriteShardReply>(ended.reply.message, "WriteShard"));
    }
  });
  return written;
}

proto::WriteShardRequest SnapshotOnTasks::request_for(const ShardToWrite& shard) const {
  proto::WriteShardRequest request;
  request.set_session(tasks_->session());
  request.set_snapshot(taken_->id());
  request.set_path(shard.path);
  for (const size_t value : shard.values) request.add_name(taken_->values().at(value).name);
  request.set_max_bytes_per_second(shard.max_bytes_per_second);
  return request;
}

Seconds SnapshotOnTasks::longest_write(const ShardToWrite& shard) const {
  double bytes = 0;
  for (const size_t value : shard.values) bytes += static_cast<double>(values_.at(value).bytes);
  const double limit = shard.max_bytes_per_second / 2;
  return kLongestCall + Seconds{bytes / (limit > 0 ? std::min(limit, kSlowestDisk) : kSlowestDisk)};
}

// What goes into an index must be what was asked for, and within the file.
WrittenShard SnapshotOnTasks::checked(const ShardToWrite& shard, const proto::WriteShardReply& reply) const {
  WrittenShard written{.bytes = reply.size_bytes(), .entries = {reply.entry().begin(), reply.entry().end()}};
  bool fits = written.entries.size() == shard.values.size();
  for (size_t i = 0; fits && i < shard.values.size(); ++i) {
    const proto::BundleEntryProto& entry = written.entries[i];
    const ValueOnTask& value = values_[shard.values[i]];
    fits = entry.dtype() == static_cast<int>(value.dtype) && entry.offset() >= 0 &&
           entry.size() == static_cast<int64_t>(value.bytes) &&
           static_cast<uint64_t>(entry.offset()) <= written.bytes &&
           value.bytes <= written.bytes - static_cast<uint64_t>(entry.offset());
  }
  if (fits) return written;
  throw InternalError(fmt::format("{} has not written to {} what it was asked for", shard.task, shard.path));
}

std::unique_ptr<ValueStream> SnapshotOnTasks::read(std::vector<size_t> values) {
  return std::make_unique<TakenStream>(*tasks_, *taken_, values_, values, streaming_);
}

std::vector<SeenFile> look_on_tasks(SessionTasks& tasks, const std::vector<std::string>& on, const std::string& path,
                                    LookFor purpose) {
  constexpr Seconds kLongest{60};
  proto::LookAtFileRequest request;
  request.set_session(tasks.session());
  request.set_path(path);
  request.set_to_write(purpose == LookFor::kWrite);
  std::vector<CallRequest> requests;
  for (const std::string& task : on)
    requests.push_back(tasks.request_to(task, methods::kLookAtFile, to_message(request)));
  const WaitLimits limits{.deadline = tasks.transport().clock().now() + kLongest,
                          .cancellation = &tasks.cancellation()};
  const std::vector<Message> replies =
      with_losses_told(tasks, [&] { return call_all(tasks.transport(), std::move(requests), limits); });
  std::vector<SeenFile> seen;
  for (const Message& reply : replies) {
    const auto file = header_of<proto::LookAtFileReply>(reply, "LookAtFile");
    seen.push_back({file.is_there(), file.size_bytes(), file.crc32c(), file.why(), file.why_read_only()});
  }
  return seen;
}

}  // namespace longhaul
