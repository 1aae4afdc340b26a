#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/graph.h"
#include "longhaul/graph/import_graph_def.h"
#include "longhaul/io/file.h"
#include "longhaul/proto/meta_graph.pb.h"

// A meta graph is a graph with all that is needed to go on training it: collections, and how it is saved. A scope's
// part of a graph can be a meta graph of its own.
namespace longhaul {

struct ExportMetaGraphOptions {
  std::optional<proto::SaverDef> saver_def;             // Saver::to_proto()
  std::optional<std::vector<std::string>> collections;  // absent: all
  // Only what is in this scope, with the names that it has inside it. What is taken from outside is named
  // "$unbound_inputs_NAME", and all these names are listed in the collection "unbound_inputs".
  std::string export_scope;
  bool clear_devices = false;
  // Leaves out the operations of all savers but that of saver_def, each of which has its own scope.
  bool clear_extraneous_savers = false;
  // Leaves out attrs that have TensorFlow's default, for readers that do not know them yet.
  bool strip_default_attrs = false;
};

// Variables by their names inside the scope: "weights:0".
using VariablesByName = std::map<std::string, VariableInfo>;

struct ExportedMetaGraph {
  proto::MetaGraphDef meta;
  VariablesByName variables;  // that are in it, as they are in the graph
};

// Default ready ops (default_ready_ops.h) are left out, also of collections: TensorFlow does not know them, and they
// are made again for an imported graph. Collections of mixed types are left out with a warning. InvalidArgumentError: a
// collection is asked for that there is not, or the graph has nothing in export_scope.
proto::MetaGraphDef export_meta_graph(const Graph& graph, const ExportMetaGraphOptions& options = {});
ExportedMetaGraph export_scoped_meta_graph(const Graph& graph, const ExportMetaGraphOptions& options);

struct ImportMetaGraphOptions {
  std::string import_scope;  // as ImportOptions::scope; also goes before the names in collections
  bool clear_devices = false;
  std::map<std::string, Output> input_map;  // as ImportOptions::input_map; "$unbound_inputs_NAME" must be in it
};

struct ImportedMetaGraph {
  ImportedGraph graph;
  VariablesByName variables;  // the global ones
};

// Adds operations and collections to `graph`. InvalidArgumentError: "unbound inputs" that input_map lacks; a collection
// names what is not there. Otherwise the errors of import_graph_def.
ImportedMetaGraph import_scoped_meta_graph(Graph& graph, const proto::MetaGraphDef& meta,
                                           const ImportMetaGraphOptions& options = {});

// Adds what `from` has in a scope to `to` (or the same graph) in another one, and returns the new variables.
// InvalidArgumentError: it is the same scope of the same graph ("need to be different"), or takes something from
// outside.
VariablesByName copy_scoped_meta_graph(const Graph& from, const std::string& from_scope, Graph& to,
                                       const std::string& to_scope);

}  // namespace longhaul
