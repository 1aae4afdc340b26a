#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/cluster_service.pb.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A data file of a checkpoint that this task writes for the one that commits the checkpoint.
struct ShardFile {
  std::string path;                 // a temporary name (checkpoint/files), which nothing may have
  double max_bytes_per_second = 0;  // 0: no limit
  Clock* clock = &Clock::real();
  // Called before each piece of some megabytes, and before the file is made: an exception from it ends the writing.
  std::function<void()> before_piece{};
};

// Writes the values, syncs the file and its name, and returns what the index needs. Renames nothing. After an error
// there is no such file, unless removing it fails too, which is logged. InvalidArgumentError: the path is not the
// temporary name of a data file, or the rate is negative. AlreadyExistsError. Otherwise throws what the file system
// throws: ResourceExhaustedError if the disk is full.
proto::WriteShardReply write_shard_file(FileSystem& files, const ShardFile& file, const std::vector<Tensor>& values);

// How long a file may be that is looked at: an index, or what was made for the question.
inline constexpr uint64_t kMostLookedAt = uint64_t{64} << 20;

// What this task sees under that path. `before_piece` as above. Only its exceptions are thrown: an error of the file
// system is part of what is seen, and so is the ResourceExhaustedError that the file has more than kMostLookedAt bytes.
proto::LookAtFileReply look_at_file(FileSystem& files, const std::string& path,
                                    const std::function<void()>& before_piece);

// Why this task cannot make files in the directory of that probe (kDirectoryProbe, checkpoint/files); "" if it can: it
// has made one whose name begins with the probe's, and removed it.
std::string why_read_only(FileSystem& files, const std::string& probe);

}  // namespace longhaul
