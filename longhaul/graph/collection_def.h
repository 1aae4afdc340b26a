#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "longhaul/graph/graph.h"
#include "longhaul/proto/meta_graph.pb.h"

namespace longhaul {

// What becomes of a name ("w", "w:0") on its way into a file; nothing: what is called so stays out.
using NameMap = std::function<std::optional<std::string>(std::string_view name)>;

struct CollectionExport {
  NameMap names;            // empty: all stay as they are
  bool named_only = false;  // what has no name (numbers, texts) stays out
};

// The collection as files have it. Variables become VariableDefs; names inside them, inside SaverDefs (collection
// "savers") and inside QueueRunnerDefs ("queue_runners") are mapped, too. Nothing: it holds things of different kinds
// (with a warning), only things that mean something to this program alone (Saveable), or nothing that stays in.
std::optional<proto::CollectionDef> collection_to_proto(const std::string& key,
                                                        const std::vector<CollectionItem>& items,
                                                        const CollectionExport& options = {});

// Puts what the file has into the graph's collections, `prefix` before all names. Variables are recognised by the keys
// that hold them, and under any other key where nothing is lost by taking a VariableDef for one. InvalidArgumentError:
// something is not in the graph; the message names the collection and the thing.
void import_collections(Graph& graph, const proto::MetaGraphDef& meta, const std::string& prefix);

// The same SaverDef with all names mapped; nothing where one of them stays out.
std::optional<proto::SaverDef> map_names(const proto::SaverDef& def, const NameMap& names);

}  // namespace longhaul
