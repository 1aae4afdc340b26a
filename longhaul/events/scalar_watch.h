#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/proto/summary.pb.h"

namespace longhaul {

// Called with each scalar that a FileWriter for a directory is given, on the thread that adds it: it must be quick, and
// must neither throw nor write to event files.
using ScalarWatch = std::function<void(std::string_view tag, double value, int64_t step)>;

// Calls `watch` as long as the caller keeps the returned object; a call may still be under way when that is destroyed.
// `directory` is FileWriter::logdir(): all writers for it in this process. Any thread.
[[nodiscard]] std::shared_ptr<const ScalarWatch> watch_scalars(std::string directory, ScalarWatch watch);

// For FileWriter. Costs the read of an atomic if nothing is watched. The second form reads a serialised summary without
// its images, audio and histograms; one that cannot be read is ignored.
void tell_scalar_watches(const std::string& directory, std::string_view tag, double value, int64_t step);
void tell_scalar_watches(const std::string& directory, std::string_view serialized_summary, int64_t step);
void tell_scalar_watches(const std::string& directory, const proto::Summary& summary, int64_t step);

}  // namespace longhaul
