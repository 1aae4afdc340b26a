#include "longhaul/train/saving/replaced_checkpoint.h"

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/train/saving/step_advice.h"

namespace longhaul {
namespace {

// Empty: none.
std::string damage_of(FileSystem& files, const std::string& prefix) {
  try {
    const std::vector<std::string> damages = BundleReader(files, prefix).verify();
    return damages.empty() ? "" : damages.front();
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

double commit_time(FileSystem& files, const std::string& prefix) {
  try {
    const std::vector<double> times = checkpoint_mtimes(files, {prefix});
    return times.empty() ? 0 : times.front();
  } catch (const Error& error) {
    log_debug("the time at which {} was saved is unknown: {}", prefix, error.what());
    return 0;
  }
}

void warn_of_replacement(FileSystem& files, const std::string& prefix, int64_t step, SaveHistory& saves,
                         const Graph& graph, const std::function<bool()>& only_random_states) {
  if (commit_time(files, prefix) != saves.committed_at() && saves.is_first_replacement()) {
    log_warning("{} was replaced by another program after it was saved: it is saved again", prefix);
    return;
  }
  if (const std::string damage = damage_of(files, prefix); !damage.empty()) {
    log_warning("{} is damaged on disk and is saved again: {}", prefix, damage);
    return;
  }
  if (only_random_states()) {
    log_info("no step was made since {}, but random numbers were drawn: it is saved again with their states", prefix);
    return;
  }
  saves.has_warned();
  log_warning(
      "the global step is still {} although variables have changed, so {} is overwritten and no other checkpoint is "
      "kept: {}",
      step, prefix, step_advice(graph, "pass the step to minimize(), or run assign_add on it in each step"));
}

}  // namespace longhaul
