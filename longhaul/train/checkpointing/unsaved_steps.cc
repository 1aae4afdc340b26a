#include "longhaul/train/checkpointing/unsaved_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"

namespace longhaul {
namespace {

std::optional<int64_t> step_on_disk(FileSystem& files, const std::string& directory) {
  try {
    const std::optional<std::string> prefix = latest_checkpoint(files, directory);
    return prefix ? split_step(*prefix).step : std::nullopt;
  } catch (const Error& error) {
    log_debug("the checkpoints in {} cannot be listed: {}", directory, error.what());
    return std::nullopt;
  }
}

}  // namespace

std::optional<UnsavedSteps> unsaved_steps(const Saver& saver, const std::string& save_path,
                                          std::optional<int64_t> start, std::optional<int64_t> now) {
  const std::string newest = saver.last_saved();
  std::optional<int64_t> saved = newest.empty() ? start : split_step(newest).step;
  if (!now || !saved || *now <= *saved) return std::nullopt;
  // One of a later step is another training's.
  const std::optional<int64_t> on_disk = step_on_disk(saver.files(), directory_name(save_path));
  if (on_disk && *on_disk <= *now) saved = std::max(*saved, *on_disk);
  if (*now <= *saved) return std::nullopt;
  const auto unsaved = static_cast<double>(*now - *saved);
  return UnsavedSteps{*saved + 1, *now, start && *start < *saved ? unsaved / static_cast<double>(*now - *start) : 1};
}

std::string describe(const UnsavedSteps& steps) {
  if (steps.first == steps.last) return fmt::format("step {} is", steps.last);
  return fmt::format("steps {} to {} are", steps.first, steps.last);
}

std::string describe_lost(const UnsavedSteps& steps, const Saver& saver) {
  const std::string newest = saver.last_saved();
  return fmt::format("training ends with an error, so no last checkpoint is saved: {} in no checkpoint; {}",
                     describe(steps), newest.empty() ? "there is none" : "the newest is " + newest);
}

}  // namespace longhaul
