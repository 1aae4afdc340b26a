#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/io/files/file.h"
#include "longhaul/train/saved_state/saver_graph.h"

// The values of a saver's tensors as the files of a checkpoint.

namespace longhaul {

// A file next to the checkpoint that is committed with it.
struct ExtraFile {
  std::string path;
  std::function<std::string()> contents;  // called while the last tensors are being written
};

// Writes and commits a checkpoint; each value is released as soon as it is written. Returns the size of the data files
// in bytes. The number of shards, and what each is expected to hold, are filled in here. Errors: BundleWriter.
uint64_t write_saved_bundle(FileSystem& files, const std::string& prefix, const SaverNodes& nodes,
                            std::vector<Tensor> values, const std::optional<ExtraFile>& extra_file,
                            BundleWriterOptions options);

// Whether the checkpoint on the disk has exactly these values.
bool has_saved_values(FileSystem& files, const std::string& prefix, const SaverNodes& nodes,
                      const std::vector<Tensor>& values);
// The same, by the checksums in its index, but for the states of random numbers (ops/random_state.h).
bool has_all_but_random_states(FileSystem& files, const std::string& prefix, const SaverNodes& nodes,
                               const std::vector<Tensor>& values);

uint64_t data_bytes_on_disk(FileSystem& files, const std::string& prefix);

}  // namespace longhaul
