#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/io/file.h"
#include "longhaul/train/saved_state/saver_graph.h"

// The values of a saver's tensors as the files of a checkpoint.

namespace longhaul {

struct SavedBundleOptions {
  FileSystem* files = &FileSystem::real();
  double max_bytes_per_second = 0;  // 0: unlimited
  Clock* clock = &Clock::real();
};

// A file next to the checkpoint that is committed with it.
struct ExtraFile {
  std::string path;
  std::function<std::string()> contents;  // called while the last tensors are being written
};

// Writes and commits a checkpoint; each value is released as soon as it is written. Returns the size of the data files
// in bytes. Errors: BundleWriter.
uint64_t write_saved_bundle(const std::string& prefix, const SaverNodes& nodes, std::vector<Tensor> values,
                            const std::optional<ExtraFile>& extra_file, const SavedBundleOptions& options);

// Whether the checkpoint on the disk has exactly these values.
bool has_saved_values(FileSystem& files, const std::string& prefix, const SaverNodes& nodes,
                      const std::vector<Tensor>& values);

uint64_t data_bytes_on_disk(FileSystem& files, const std::string& prefix);

}  // namespace longhaul
