#include "longhaul/session/newest_step.h"

namespace longhaul {
namespace {

// Of a run whose values are no steps this finds out without a look at the graph.
bool may_be_a_step(const Fetch::Target& fetch, const Tensor& value) {
  return !fetch.is_operation() && value.defined() && value.dtype() == kInt64 && value.shape().rank() == 0;
}

bool is_global_step(const Graph& graph, const Output& output) {
  for (const VariableInfo& info : graph.collection_of<VariableInfo>(collections::kGlobalStep)) {
    if (output == info.ref || output == info.read) return true;
  }
  return false;
}

}  // namespace

void NewestStep::note(const Graph& graph, const std::vector<Fetch::Target>& fetches, std::span<const Tensor> values,
                      Seconds began) {
  for (size_t i = 0; i < fetches.size() && i < values.size(); ++i) {
    if (!may_be_a_step(fetches[i], values[i]) || !is_global_step(graph, fetches[i].output())) continue;
    const auto step = values[i].item<int64_t>();
    MutexLock lock(mutex_);
    if (step_ && began < began_) continue;
    step_ = step;
    began_ = began;
  }
}

std::optional<ReadStep> NewestStep::read(Seconds now) const {
  MutexLock lock(mutex_);
  if (!step_) return std::nullopt;
  return ReadStep{*step_, now - began_};
}

}  // namespace longhaul
