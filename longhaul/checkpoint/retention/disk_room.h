#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The bytes that these tensors take in a checkpoint's data files, including the lengths of strings.
uint64_t stored_bytes(const std::vector<Tensor>& values);

// Checkpoints that may be deleted to make room for a new one.
struct Dispensable {
  std::function<void()> remove_old;  // deletes those that are no longer needed
  // Deletes old checkpoints that are still kept, one after another, until `fits()`. Deletes none if together they have
  // fewer bytes than `missing`.
  std::function<void(uint64_t missing, const std::function<bool()>& fits)> remove_oldest;
};

// Ensures, before the first byte is written, that the disk has room for a checkpoint with `data_bytes` of data, plus a
// 64th of it and a megabyte for its index, its meta graph and the file system. If not, first deletes dispensable files
// (temporary files of dead processes, damaged checkpoints kept for inspection, and those that `remove_old` deletes),
// then old checkpoints. ResourceExhaustedError: there is still not enough room; the message has both numbers.
// DirectoryLostError: another process owns the directory. A file system that does not report its free space is assumed
// to have room.
void make_room(FileSystem& files, const std::string& prefix, uint64_t data_bytes, const Dispensable& dispensable);

// Whether the error of a write means that the disk, or this user's quota, is full.
bool is_disk_full(const Error& error);

}  // namespace longhaul
