#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/safetensors/safetensors_header.h"
#include "longhaul/io/file.h"

namespace longhaul {

// Options for copying tensors between a checkpoint and a safetensors file, in either direction.
struct SafetensorsOptions {
  // The name of a tensor in the copy; nullopt leaves it out. Without a function, all names are kept.
  std::function<std::optional<std::string>(const std::string& name)> rename{};

  // Whether a tensor whose dtype the destination does not have is left out and reported, instead of being an error.
  bool skip_unsupported = false;

  // Added to the metadata, replacing values with the same keys.
  std::map<std::string, std::string> metadata{};
};

struct SafetensorsReport {
  std::vector<std::string> names;    // new names of the copied tensors; sorted
  std::vector<std::string> skipped;  // old names of those left out by `skip_unsupported`; sorted
  std::map<std::string, std::string> metadata;
  uint64_t bytes = 0;  // of the tensors
};

// Writes the tensors of a checkpoint to a safetensors file (docs/formats/safetensors.md), which other frameworks read.
// The checkpoint is named by its prefix, or by a directory, which stands for the latest one there.
//
//   export_safetensors("runs/demo", "demo.safetensors", {.rename = [](const std::string& name) { ... }});
//
// The checksum of each tensor is verified; a tensor stored in slices is written whole. Memory holds tensors of up to 64
// MiB together, or a single larger one, and earlier ones that are still on their way to the disk. The metadata are
// those of the file that the checkpoint was imported from, plus "format" ("pt": readers require it), "source" (the base
// name of the prefix) and "global_step" (of the variable, else of the prefix). The same checkpoint gives the same
// bytes.
//
// The file is written under a temporary name next to `path`, synced, renamed, and the directory synced: a crash at any
// moment leaves the old file (or none, if there was none) or the new one, intact. So does an error, without a temporary
// file; a kill may leave one, `<path>.tempstate...`. If this process has locked the directory, ownership is checked
// before the first byte and before the rename: DirectoryLostError.
//
// InvalidArgumentError: two tensors get the same name, one gets an empty name or "__metadata__", a text is not UTF-8,
// the header gets too long. UnimplementedError: the format has no such dtype (strings, complex128, ...). Others as in
// BundleReader, and the file system's. The messages name the tensor. Any thread.
SafetensorsReport export_safetensors(const std::string& prefix_or_directory, const std::string& path,
                                     const SafetensorsOptions& options = {}, FileSystem& files = FileSystem::real());

// Converts a safetensors file into a checkpoint: a tensor bundle that `init_from_checkpoint`, a Saver, or TensorFlow
// reads. It is committed like any other (bundle_writer.h), but no state file names it; after an error, nothing of it
// remains. Memory use is as for an export.
//
// The metadata become a string tensor of shape [n,2], keys and values, named "__metadata__", which cannot be a tensor's
// name in the file; an export turns it back into metadata. Without metadata there is no such tensor.
//
// DataLossError: the file is damaged, or not a safetensors file (read_safetensors_header), or a BOOL is neither 0 nor
// 1. InvalidArgumentError: two tensors get the same name, or one gets a name that checkpoints cannot have.
// UnimplementedError: we have no such dtype (F8_E4M3, ...). Others as in BundleWriter. One import at a time for
// checkpoints with one basename.
SafetensorsReport import_safetensors(const std::string& path, const std::string& prefix,
                                     const SafetensorsOptions& options = {}, FileSystem& files = FileSystem::real());

}  // namespace longhaul
