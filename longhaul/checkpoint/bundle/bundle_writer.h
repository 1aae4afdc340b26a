#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/checkpoint/bundle/slice.h"
#include "longhaul/checkpoint/files/writes_under_way.h"
#include "longhaul/io/file.h"
#include "longhaul/io/rate_limit.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

namespace proto {
class BundleEntryProto;
}

struct BundleWriterOptions {
  int num_shards = 1;
  std::vector<uint64_t> expected_bytes;  // of each shard, as far as they are known; see add_expected()
  double max_bytes_per_second = 0;       // of tensors, in all shards together; 0: as fast as the disk
  Clock* clock = &Clock::real();

  // That a tensor will go to that shard.
  void add_expected(int shard, const Tensor& tensor);
};

// Writes a checkpoint: a tensor bundle in data files (one, or several shards) and an index, as TensorFlow's readers
// expect them (docs/formats/tensor_bundle.md).
//
//   adding --finish_data--> data in place --commit--> committed          any of them --an error--> failed
//
//   BundleWriter writer(files, "runs/demo/model.ckpt-100");
//   writer.add("b", bias);
//   writer.add("w", weights);
//   writer.add_file("runs/demo/model.ckpt-100.meta", graph);
//   writer.finish();
//
// What is on the disk, step by step; a crash between any two leaves the old checkpoint of that name, or the new one,
// whole:
//   1. The tensors go to temporary data files as they are added. The old one is untouched.
//   2. While the last of them are on their way to the disk, add_file() and finish_data() write the files beside them
//      and the index under temporary names, sync and close each, and sync the directory: from now on the index says,
//      whatever happens, that files of this name may be there which are not committed (crash_leftovers.h).
//   3. The data files are synced and closed. No file gets its name before the bytes of all are durable.
//   4. Is the name taken by a committed checkpoint, that one is set aside by hard links, durably; then its index is
//      removed. From here on readers find the old one aside (checkpoint_files.h).
//   5. The data files get their names, and those that add_file() was given.
//   6. commit(): the directory is synced, so that no index is ever without its data.
//   7. The index gets its name: this is the commit. The directory is synced.
//   8. What was set aside is removed, and data files of other shard counts.
// Destroyed before 7, the writer removes what it wrote and puts back what it had set aside, the temporary index last.
// Temporary files of a dead process are removed by the next writer with the same basename, whatever its step.
//
// Where this process has locked the directory (io/directory_lock.h), it asks before the first byte, before each rename
// and before anything is removed whether the directory is still its own: DirectoryLostError. Of a directory that it
// has lost, it removes its temporary files and no more, and from step 4 on not the index.
//
// The same calls give the same bytes, however the file system writes them. Tensors are written in the order of the
// calls and, where they are aligned, from where they are, without a copy: a large one may be on its way to the disk
// when add() returns. Until it is written the writer keeps a handle of it, whose bytes must not change, and
// computes the checksums of the ones after it.
//
// One thread at a time; one process at a time for the checkpoints of one basename. I/O errors are the file system's;
// after any error the checkpoint cannot be committed, and further calls throw FailedPreconditionError.
class BundleWriter {
 public:
  // Makes the prefix's directory. Tensors go to the first of the shards until use_shard() names another.
  BundleWriter(FileSystem& files, const std::string& prefix, const BundleWriterOptions& options);
  BundleWriter(FileSystem& files, const std::string& prefix, int num_shards = 1);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // What is added next goes to this data file. InvalidArgumentError: there are not so many.
  void use_shard(int shard);

  // InvalidArgumentError: the name is empty or taken ("duplicate key"), or there is no tensor.
  void add(const std::string& name, const Tensor& tensor);

  // A part of the tensor `name`, whose whole shape is `full_shape`. Readers put the parts together; TensorFlow's refuse
  // those of half, uint16, uint32 and uint64, which is said once in the log.
  // InvalidArgumentError: the tensor has not the slice's shape, the slice reaches outside, overlaps another, or the
  // parts disagree about the whole.
  void add_slice(const std::string& name, const Shape& full_shape, const TensorSlice& slice, const Tensor& tensor);

  // A file that belongs to the checkpoint and is no tensor, as the meta graph: `path` is what it is called beside the
  // index. Best added after the tensors.
  void add_file(const std::string& path, std::string_view contents);

  void finish_data();
  void commit();
  void finish() {
    finish_data();
    commit();
  }

  uint64_t data_bytes() const;  // in all shards

 private:
  struct Shard {
    std::string path, temporary;
    std::unique_ptr<WritableFile> file;
    uint64_t offset = 0;
  };
  struct OtherFile {
    std::string path, temporary;
    std::unique_ptr<WritableFile> file;
  };
  enum class State { kAdding, kDataFinished, kCommitted, kFailed };

  // Runs `work`, which leads from one state to another, or to kFailed.
  void advance(State from, State to, const std::function<void()>& work);
  void check_new_key(const std::string& name, const std::string& key) const;
  void write_tensor(const std::string& key, const Tensor& tensor);
  void append(std::string_view bytes, const std::shared_ptr<const void>& owner = nullptr);
  void pad(uint64_t offset);
  proto::BundleEntryProto& whole_entry(const std::string& name, const Shape& full_shape, DType dtype);
  void keep_lost_data();
  void give_names();
  void rename_as_owner(const std::string& from, const std::string& to);
  std::unique_ptr<WritableFile> write_index();
  void remove_leftovers();
  void remove_temporaries();
  void remove_temporary_files();
  bool is_aside(const std::string& path) const;
  void undo();
  void take_names_back();

  FileSystem& files_;
  const std::string prefix_;
  const WriteUnderWay under_way_;
  const std::string directory_;
  const std::string index_temporary_;
  State state_ = State::kAdding;
  bool prefix_touched_ = false;  // step 4 was begun
  bool index_in_place_ = false;
  RateLimit limit_;
  std::vector<Shard> shards_;
  std::vector<OtherFile> others_;                           // add_file()
  size_t shard_ = 0;                                        // that tensors go to
  std::map<std::string, proto::BundleEntryProto> entries_;  // by key, as the index wants them
  std::map<std::string, std::vector<TensorSlice>> slices_;  // by name, with all their lengths
};

}  // namespace longhaul
