#include "longhaul/train/monitored/step_context.h"

#include "longhaul/train/monitored/coordinated_session.h"

namespace longhaul {

Session& StepContext::session() const {
  return session_.session();
}

Tensor StepContext::run_with_hooks(const Fetch& fetch, const Feeds& feeds, const RunOptions& options,
                                   proto::RunMetadata* metadata) const {
  return run_with_hooks(std::vector<Fetch>{fetch}, feeds, options, metadata)[0];
}

std::vector<Tensor> StepContext::run_with_hooks(const std::vector<Fetch>& fetches, const Feeds& feeds,
                                                const RunOptions& options, proto::RunMetadata* metadata) const {
  return session_.run({.fetches = fetches, .feeds = feeds, .options = options}, {}, metadata);
}

void StepContext::request_stop() const {
  throw StopIteration("step_fn has requested the iterations to stop.");
}

}  // namespace longhaul
