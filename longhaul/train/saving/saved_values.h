#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/train/saving/saved_bundle.h"

namespace longhaul {

class Session;
class Snapshots;
class StepSource;

// The values of a save, all read at one moment, between two steps: in this process, or on the tasks that have their
// variables, which write them. One thread at a time may call.
class SavedValues {
 public:
  virtual ~SavedValues() = default;

  std::optional<int64_t> step{};  // of that moment, or as the caller gave it
  Seconds waited{0};              // until the step under way ended

  // For each tensor of the saver: the value, or a part of it (session/task_snapshots.h). Empty after write().
  virtual const std::vector<Tensor>& samples() const = 0;
  virtual uint64_t bytes() const = 0;  // that they take in data files

  // Whether the checkpoint on the disk has exactly these values: byte for byte, or, of values on other tasks, by the
  // checksums in its index.
  virtual bool are_saved(FileSystem& files, const std::string& prefix) = 0;
  // The same, by the checksums in its index, but for the states of random numbers (ops/random_state.h).
  virtual bool all_but_random_states_are_saved(FileSystem& files, const std::string& prefix) = 0;

  // As write_saved_bundle(). At most once; releases the values.
  virtual uint64_t write(FileSystem& files, const std::string& prefix, const std::optional<ExtraFile>& extra_file,
                         const BundleWriterOptions& options) = 0;
};

// Reads them in one run. Values stay on their tasks if the session can leave them there and one is not on its own task.
// `keeping`: of the last session, for its memory; set to this one's. Throws what a run throws.
std::unique_ptr<SavedValues> read_values(Session& session, const SaverNodes& nodes, const StepSource& step,
                                         std::shared_ptr<Snapshots>& keeping);

}  // namespace longhaul
