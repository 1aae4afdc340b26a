#include "longhaul/ops/saveable.h"

namespace longhaul::ops {

void add_saveable(Graph& graph, Saveable saveable) {
  graph.add_to_collection(collections::kSaveableObjects, std::make_shared<const Saveable>(std::move(saveable)));
}

std::vector<Saveable> saveable_objects(const Graph& graph) {
  std::vector<Saveable> saveables;
  for (const auto& saveable : graph.collection_of<std::shared_ptr<const Saveable>>(collections::kSaveableObjects)) {
    saveables.push_back(*saveable);
  }
  return saveables;
}

}  // namespace longhaul::ops
