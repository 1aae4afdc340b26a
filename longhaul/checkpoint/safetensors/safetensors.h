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

// How tensors are copied between a checkpoint and a safetensors file, in either direction.
struct SafetensorsOptions {
  // The name that a tensor gets where it is copied to; nullopt leaves it out. Without a function all keep theirs.
  std::function<std::optional<std::string>(const std::string& name)> rename;

  // A tensor whose dtype the other side does not have is left out, and reported, instead of being an error.
  bool skip_unsupported = false;

  // Added to the metadata, in place of what is there under the same keys.
  std::map<std::string, std::string> metadata;
};

struct SafetensorsReport {
  std::vector<std::string> names;    // of the tensors that were copied, as they are called now; sorted
  std::vector<std::string> skipped;  // those of `skip_unsupported`, as they were called before; sorted
  std::map<std::string, std::string> metadata;
  uint64_t bytes = 0;  // of the tensors
};

// Writes the tensors of a checkpoint to a safetensors file (docs/formats/safetensors.md), which other frameworks read.
// The checkpoint is named by its prefix, or by its directory: then it is the latest one there.
//
//   export_safetensors("runs/demo", "demo.safetensors", {.rename = [](const std::string& name) { ... }});
//
// Each tensor is read with its checksum verified; one that is stored in slices is written whole. In memory are tensors
// of 64 MiB together, or a single larger one, and those before them that are still on their way to the disk. The
// metadata are those of the file that the checkpoint was imported from, and "format" ("pt": readers ask for it),
// "source" (the base name of the prefix) and "global_step" (of the variable, else of the prefix). The same checkpoint
// gives the same bytes.
//
// The file is written under a temporary name beside `path`, synced, renamed, and the directory synced: after a crash at
// any moment there is the old file, or none, or the new one, whole. An error leaves the same, and no temporary file; a
// kill may leave one, `<path>.tempstate...`. Where this process has locked the directory, it asks before
// the first byte and before the rename whether it is still its own: DirectoryLostError.
//
// InvalidArgumentError: two tensors get one name, one gets no name or "__metadata__", a text is not UTF-8, the header
// gets too long. UnimplementedError: the format has no such dtype (strings, complex128, ...). Others: BundleReader's,
// and the file system's. The messages name the tensor. Any thread.
SafetensorsReport export_safetensors(const std::string& prefix_or_directory, const std::string& path,
                                     const SafetensorsOptions& options = {}, FileSystem& files = FileSystem::real());

// Makes a checkpoint of a safetensors file: a tensor bundle that `init_from_checkpoint`, a Saver, or TensorFlow reads.
// It is committed as any other (bundle_writer.h), and no state file names it; whatever was wrong, nothing of it stays.
// The same amount of memory is taken.
//
// The metadata become a tensor of strings of shape [n,2], keys and values, with the name "__metadata__", which no
// tensor of the file has, and which an export makes metadata again; without metadata there is none.
//
// DataLossError: the file is damaged, or none of the format (read_safetensors_header), or a BOOL is neither 0 nor 1.
// InvalidArgumentError: two tensors get one name, one gets a name that checkpoints do not have. UnimplementedError: we
// have no such dtype (F8_E4M3, ...). Others: BundleWriter's. One import at a time for the checkpoints of one basename.
SafetensorsReport import_safetensors(const std::string& path, const std::string& prefix,
                                     const SafetensorsOptions& options = {}, FileSystem& files = FileSystem::real());

}  // namespace longhaul
