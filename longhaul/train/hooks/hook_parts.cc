#include "longhaul/train/hooks/hook_parts.h"

#include <fmt/format.h>

#include "longhaul/events/file_writer_cache.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul {

void HookStep::find(const Graph& graph, const char* hook) {
  const auto step = ops::get_global_step(graph);
  if (!step) {
    throw FailedPreconditionError(
        fmt::format("Global step should be created to use {}: call ops::global_step() while building the graph", hook));
  }
  tensor_ = *step;
  args_ = {.fetches = {tensor_}};
}

int64_t HookStep::now(Session& session) const {
  return session.run(tensor_).item<int64_t>();
}

std::shared_ptr<FileWriter> hook_writer(const std::shared_ptr<FileWriter>& given, const std::string& directory,
                                        FileSystem* files, Clock* clock) {
  if (given != nullptr || directory.empty()) return given;
  return FileWriterCache::get(directory, {.files = files, .clock = clock});
}

}  // namespace longhaul
