#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/safetensors/safetensors_header.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// Options for copying tensors between a checkpoint and a safetensors file, in either direction.
struct SafetensorsOptions {
  // Returns the name of a tensor in the copy, or nullopt to leave it out. Empty: all names are kept.
  std::function<std::optional<std::string>(const std::string& name)> rename{};

  // Whether a tensor whose dtype the destination lacks is left out and reported. false: it is an error.
  bool skip_unsupported = false;

  // Added to the metadata, replacing values with the same keys.
  std::map<std::string, std::string> metadata{};
};

struct SafetensorsReport {
  std::vector<std::string> names;    // new names of the copied tensors; sorted
  std::vector<std::string> skipped;  // old names of the tensors that `skip_unsupported` left out; sorted
  std::map<std::string, std::string> metadata;
  uint64_t bytes = 0;  // of the tensors
};

// Writes the tensors of a checkpoint to a safetensors file (docs/formats/safetensors.md), which other frameworks read.
// The first argument is the prefix of the checkpoint, or a directory, which stands for the latest checkpoint there.
//
//   const auto rename = [](const std::string& name) { return "demo." + name; };
//   export_safetensors("runs/demo", "demo.safetensors", {.rename = rename});
//
// Verifies the checksum of each tensor. A tensor stored in slices is written whole. At any time, memory holds tensors
// of up to 64 MiB together, or a single larger one, and those that are still on their way to the disk. The metadata are
// those of the file from which the checkpoint was imported, plus "format" ("pt", which readers require), "source" (the
// base name of the prefix) and "global_step" (of the variable, else of the prefix). The same checkpoint gives the same
// bytes.
//
// The file is written under a temporary name next to `path`, synced and renamed, and the directory is synced. A crash
// or an error at any moment leaves the old file (or none, if there was none) or the new one, intact. An error leaves no
// temporary file; a kill may leave one, `<path>.tempstate...`. If this process has locked the directory, ownership is
// checked before the first byte and before the rename: DirectoryLostError.
//
// InvalidArgumentError: two tensors get the same name, one gets an empty name or "__metadata__", a text is not UTF-8,
// or the header gets too long. UnimplementedError: the format lacks the dtype (strings, complex128, ...). Other errors
// are those of BundleReader and the file system. The messages name the tensor. Any thread may call.
SafetensorsReport export_safetensors(const std::string& prefix_or_directory, const std::string& path,
                                     const SafetensorsOptions& options = {}, FileSystem& files = FileSystem::real());

// Converts a safetensors file into a checkpoint: a tensor bundle that `init_from_checkpoint`, a Saver, or TensorFlow
// reads. It is committed like any other checkpoint (bundle_writer.h), but no state file names it. After an error,
// nothing of it remains. Uses as much memory as an export.
//
// The metadata become a string tensor of shape [n,2] (keys and values) named "__metadata__"; in the file, no tensor can
// have that name. An export turns it back into metadata. Without metadata there is no such tensor.
//
// DataLossError: the file is damaged, or not a safetensors file (read_safetensors_header), or a BOOL is neither 0 nor
// 1. InvalidArgumentError: two tensors get the same name, or one gets a name that checkpoints cannot have.
// UnimplementedError: the library lacks the dtype (F8_E4M3, ...). Other errors are those of BundleWriter. Only one
// import at a time may write checkpoints with the same basename.
SafetensorsReport import_safetensors(const std::string& path, const std::string& prefix,
                                     const SafetensorsOptions& options = {}, FileSystem& files = FileSystem::real());

}  // namespace longhaul
