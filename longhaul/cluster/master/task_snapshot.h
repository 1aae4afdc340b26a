#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/cluster/master/taken_snapshot.h"
#include "longhaul/cluster/master/value_stream.h"
#include "longhaul/session/task_snapshots.h"

namespace longhaul {

// What a saver sees of a taken snapshot. Its calls may take long; while they do, the snapshot's leases are renewed. It
// may outlive its session, whose end ends its calls.
class SnapshotOnTasks : public TaskSnapshot {
 public:
  // Asks the tasks what they hold. Throws what a run throws.
  SnapshotOnTasks(std::shared_ptr<SessionTasks> tasks, std::unique_ptr<TakenSnapshot> taken,
                  const StreamLimits& streaming);
  ~SnapshotOnTasks() override;

  const std::vector<ValueOnTask>& values() const override { return values_; }
  std::optional<int64_t> global_step() const override { return taken_->global_step(); }
  std::vector<uint32_t> checksums() override;
  std::vector<WrittenShard> write(const std::vector<ShardToWrite>& shards) override;
  std::unique_ptr<ValueStream> read(std::vector<size_t> values) override;

 private:
  std::vector<uint32_t> describe(bool checksums);
  void note(const std::string& task, const proto::DescribeTakenReply& described, const std::vector<Tensor>& samples,
            std::vector<uint32_t>& crcs);
  proto::WriteShardRequest request_for(const ShardToWrite& shard) const;
  Seconds longest_write(const ShardToWrite& shard) const;
  WrittenShard checked(const ShardToWrite& shard, const proto::WriteShardReply& reply) const;

  const std::shared_ptr<SessionTasks> tasks_;
  const std::unique_ptr<TakenSnapshot> taken_;
  const StreamLimits streaming_;
  std::vector<ValueOnTask> values_;
};

// What each of these tasks sees under that path.
std::vector<SeenFile> look_on_tasks(SessionTasks& tasks, const std::vector<std::string>& on, const std::string& path,
                                    LookFor purpose);

}  // namespace longhaul
