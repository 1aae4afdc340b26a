#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "longhaul/graph/graph.h"
#include "longhaul/proto/meta_graph.pb.h"

namespace longhaul {

// Maps a name ("w", "w:0") for writing it to a file; nullopt: leave out items with that name.
using NameMap = std::function<std::optional<std::string>(std::string_view name)>;

struct CollectionExport {
  NameMap names;            // empty: all names are kept
  bool named_only = false;  // leave out items without names (numbers, texts)
};

// The collection as it is in files. Variables become VariableDefs; names inside them, inside SaverDefs (collection
// "savers") and inside QueueRunnerDefs ("queue_runners") are mapped too. nullopt: it holds items of different kinds
// (with a warning), only items without meaning outside this program (Saveable), or all are left out.
std::optional<proto::CollectionDef> collection_to_proto(const std::string& key,
                                                        const std::vector<CollectionItem>& items,
                                                        const CollectionExport& options = {});

// Adds the file's collections to the graph's, with `prefix` before all names. Variables are recognised by their
// collections' keys, and under any other key if nothing is lost by taking the item for a VariableDef.
// InvalidArgumentError: an item is not in the graph; the message names the collection and the item.
void import_collections(Graph& graph, const proto::MetaGraphDef& meta, const std::string& prefix);

// The same SaverDef with all names mapped; nullopt if one of them is left out.
std::optional<proto::SaverDef> map_names(const proto::SaverDef& def, const NameMap& names);

}  // namespace longhaul
