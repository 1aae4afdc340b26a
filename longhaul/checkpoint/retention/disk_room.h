#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/io/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What these tensors take in the data files of a checkpoint, strings with their lengths.
uint64_t stored_bytes(const std::vector<Tensor>& values);

// What may be deleted for a checkpoint that does not fit.
struct Dispensable {
  std::function<void()> remove_old;  // what nobody needs any more
  // Old checkpoints that are still kept, one after another until `fits()`; none if all of them are less than `missing`.
  std::function<void(uint64_t missing, const std::function<bool()>& fits)> remove_oldest;
};

// Makes sure, before the first byte is written, that the disk has room for a checkpoint with `data_bytes` of data, and
// something to spare for its index, its meta graph and the file system: a 64th of it and a megabyte. Where it has not,
// what nobody needs goes first: temporary files of dead processes, damaged checkpoints that were kept to be looked at,
// and what `remove_old` removes; then old checkpoints. ResourceExhaustedError: that was not enough; the message has
// both numbers. DirectoryLostError: the directory is another's. A file system that does not tell how much is free has
// room.
void make_room(FileSystem& files, const std::string& prefix, uint64_t data_bytes, const Dispensable& dispensable);

// Whether the error of a write says that the disk, or what this user may have of it, is full.
bool is_disk_full(const Error& error);

}  // namespace longhaul
