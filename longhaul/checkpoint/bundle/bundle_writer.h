#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/checkpoint/bundle/shard_writer.h"
#include "longhaul/checkpoint/bundle/slice.h"
#include "longhaul/io/files/file.h"
#include "longhaul/io/files/rate_limit.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

class UncommittedFiles;
class WrittenEntries;

struct BundleWriterOptions {
  int num_shards = 1;
  std::vector<uint64_t> expected_bytes{};  // of each shard, as far as known; see add_expected()
  double max_bytes_per_second = 0;         // of tensors, in all shards together; 0: unlimited
  // Others write the data files, under the names that temporary_data() says, and the writer adopts them.
  bool data_elsewhere = false;
  Pause pause{};  // how it waits for that rate (RateLimit); empty: by the clock. An exception ends the writing.
  Clock* clock = &Clock::real();

  // Announces that a tensor of that size will be added to that shard; not used for strings.
  void add_expected(int shard, const Tensor& tensor);
  void add_expected(int shard, uint64_t size);
};

// Writes a checkpoint: a tensor bundle of one or more data files (shards) and an index, in the format of TensorFlow's
// readers (docs/formats/tensor_bundle.md).
//
//   adding --finish_data--> data in place --commit--> committed          any of them --an error--> failed
//
//   BundleWriter writer(files, "runs/demo/model.ckpt-100");
//   writer.add("b", bias);
//   writer.add("w", weights);
//   writer.add_file("runs/demo/model.ckpt-100.meta", graph);
//   writer.finish();
//
// The steps on disk; a crash between any two leaves the old checkpoint of that name, or the new one, intact:
//   1. The tensors are written to temporary data files as they are added. The old checkpoint is untouched.
//   2. While the last of them are still being written to the disk, add_file() and finish_data() write the accompanying
//      files and the index under temporary names, sync and close each, and sync the directory. From now on, the
//      temporary index shows that uncommitted files of this name may exist (crash_leftovers.h).
//   3. The data files are synced and closed. No file gets its final name before the bytes of all files are durable.
//   4. A committed checkpoint that already has the name is set aside: its files get second names by hard links, the
//      links are synced, then its index is removed. From now on, readers find it under those names
//      (checkpoint_files.h).
//   5. The data files and those from add_file() get their final names.
//   6. commit() syncs the directory, so the index is never on disk without the data.
//   7. It renames the index to its final name, which commits the checkpoint, and syncs the directory again.
//   8. It removes the files that were set aside, and data files with other shard counts.
// If destroyed before step 7, the writer removes the files that it wrote, the temporary index last, and restores a
// checkpoint that it set aside. The next writer with the same basename, whatever its step, removes the temporary files
// of a dead process.
//
// If this process has locked the directory (io/lock/directory_lock.h), the writer checks before the first byte, each
// rename and each removal that the process still owns it, and otherwise throws DirectoryLostError. In a lost directory
// the writer removes only its temporary files; from step 4 on, it keeps the temporary index.
//
// The same calls give the same bytes, however the file system writes them. Tensors are written in the order of the
// calls and, if aligned, without a copy: a large tensor may still be on its way to the disk when add() returns. Until
// it is written, the writer keeps a handle to it, and its bytes must not change. During that time the checksums of
// later tensors are computed.
//
// The data files may also be written by other processes that see the same disk (BundleWriterOptions::data_elsewhere),
// each by a ShardWriter, which syncs and closes its file before the writer adopts it. They rename nothing: all steps
// from 2 on are the writer's alone.
//
//   writer.use_shard(1);
//   ... another process writes writer.temporary_data(1), and says which entries it has ...
//   writer.adopt("b", entry);
//   writer.adopt_file(bytes);
//
// If it is destroyed before the commit, it removes these files too. One that appears later, from a process that did not
// know, is removed by the next writer in that directory.
//
// One thread at a time may call, and only one process at a time may write checkpoints with the same basename. I/O
// errors are those of the file system. After any error the checkpoint cannot be committed, and further calls throw
// FailedPreconditionError.
class BundleWriter {
 public:
  // Creates the prefix's directory. Tensors go to the first shard until use_shard() selects another.
  BundleWriter(FileSystem& files, const std::string& prefix, const BundleWriterOptions& options);
  BundleWriter(FileSystem& files, const std::string& prefix, int num_shards = 1);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // Tensors added from now on go to this data file. InvalidArgumentError: there is no such shard.
  void use_shard(int shard);

  // InvalidArgumentError: the name is empty or taken ("duplicate key"), or the tensor is undefined.
  void add(const std::string& name, const Tensor& tensor);

  // Adds a part of the tensor `name`, whose full shape is `full_shape`. Readers join the parts. TensorFlow's reader
  // refuses parts of half, uint16, uint32 and uint64 tensors; for these, a warning is logged once.
  // InvalidArgumentError: the tensor does not have the slice's shape, the slice reaches outside or overlaps another, or
  // the parts disagree about the full shape.
  void add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice, const Tensor& tensor);

  // The same for tensors whose elements come in pieces.
  void add(const std::string& name, const TensorInPieces& tensor);
  void add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                 const TensorInPieces& tensor);

  // The same for tensors in a data file that was written elsewhere; `entry` is what its ShardWriter returned.
  void adopt(const std::string& name, const proto::BundleEntryProto& entry);
  void adopt_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                   const proto::BundleEntryProto& entry);
  // Its size. Before it gets its final name, UnavailableError: this process does not see it, or sees another size.
  void adopt_file(uint64_t bytes);
  const std::string& temporary_data(int shard) const;  // the path under which that data file is written

  // Adds a file of the checkpoint other than its tensors, such as the meta graph. `path` is its final path, next to the
  // index. Best called after the tensors were added.
  void add_file(const std::string& path, std::string_view contents);

  void finish_data();
  void commit();
  void finish() {
    finish_data();
    commit();
  }

  uint64_t data_bytes() const;  // in all shards

 private:
  enum class State { kAdding, kDataFinished, kCommitted, kFailed };

  // Runs `work` and moves from one state to the other, or to kFailed if it throws.
  void advance(State from, State to, const std::function<void()>& work);
  using WriteBytes = std::function<proto::BundleEntryProto()>;
  void add_bytes(const std::string& name, const WriteBytes& write);
  void add_part(const std::string& name, const Shape& full_shape, const TensorSlice& slice,
                const proto::BundleEntryProto& part, const WriteBytes& write);
  ShardWriter& data();

  State state_ = State::kAdding;
  RateLimit limit_;
  const std::unique_ptr<UncommittedFiles> files_;
  const std::unique_ptr<WrittenEntries> entries_;
  std::vector<ShardWriter> shards_;  // none with data_elsewhere
  std::vector<uint64_t> adopted_;    // the sizes of the data files, then
  size_t shard_ = 0;                 // to which tensors are added
};

}  // namespace longhaul
