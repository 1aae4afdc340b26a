#include "longhaul/train/saved_state/input_watch.h"

#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

constexpr int64_t kFewestSteps = 10;  // some programs take a batch for several steps on purpose

const Tensor* value_of(const std::string& name, const std::vector<SaverNodes::SavedTensor>& tensors,
                       const std::vector<Tensor>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (tensors[i].name == name) return &values[i];
  }
  return nullptr;
}

}  // namespace

void InputWatch::look(const Graph& graph, const std::vector<SaverNodes::SavedTensor>& tensors,
                      const std::vector<Tensor>& values, int64_t step) {
  for (const ops::LoadedInput& input : ops::loaded_inputs(graph)) {
    const Tensor* position = value_of(input.name, tensors, values);
    if (position == nullptr) continue;
    const std::optional<int64_t> since = stuck_since(input, position->item<int64_t>(), step);
    if (!since) continue;
    log_warning(
        "steps {} to {} all took the same batch of input {}: nothing advances its position, which is still {}, so "
        "training sees no other batch, and each restart begins with it. Run its `advance` in each step: "
        "ops::group(root, {{train_op, input.advance}})",
        *since + 1, step, input.name, input.position);
  }
}

// The step after which all took the same batch, if that is worth a warning.
std::optional<int64_t> InputWatch::stuck_since(const ops::LoadedInput& input, int64_t position, int64_t step) {
  MutexLock lock(mutex_);
  Seen& seen = seen_.try_emplace(input.name, Seen{position, step}).first->second;
  if (seen.position != position || seen.step > step) seen = {position, step, seen.has_warned};
  const int64_t steps = step - seen.step;
  const bool each_step_took_it = input.position == position && input.takes >= steps;
  if (steps < kFewestSteps || !each_step_took_it || std::exchange(seen.has_warned, true)) return std::nullopt;
  return seen.step;
}

}  // namespace longhaul
