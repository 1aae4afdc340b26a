#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/graph.h"
#include "longhaul/graph/graph_def/import_graph_def.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/meta_graph.pb.h"

// A meta graph is a graph with everything that is needed to continue its training: its collections and the definition
// of its saver. The part of a graph in one scope can also be exported as a meta graph.
namespace longhaul {

struct ExportMetaGraphOptions {
  std::optional<proto::SaverDef> saver_def{};             // Saver::to_proto()
  std::optional<std::vector<std::string>> collections{};  // nullopt: all
  // Exports only this scope, with names relative to it. Inputs from outside are named "$unbound_inputs_NAME", and all
  // these names are listed in the collection "unbound_inputs".
  std::string export_scope{};
  bool clear_devices = false;
  // Leaves out the operations of all savers except that of saver_def; each saver has its own scope.
  bool clear_extraneous_savers = false;
  // Leaves out attrs that have TensorFlow's default value, for older readers that do not know them.
  bool strip_default_attrs = false;
};

// Variables by their names inside the scope: "weights:0".
using VariablesByName = std::map<std::string, VariableInfo>;

struct ExportedMetaGraph {
  proto::MetaGraphDef meta;
  VariablesByName variables;  // the exported variables, as in the graph
};

// Default ready ops (default_ready_ops.h) are left out, of collections too: TensorFlow does not know them, and they are
// created again for an imported graph. Collections of mixed types are left out with a warning. InvalidArgumentError: a
// requested collection does not exist, or the graph has nothing in export_scope.
proto::MetaGraphDef export_meta_graph(const Graph& graph, const ExportMetaGraphOptions& options = {});
ExportedMetaGraph export_scoped_meta_graph(const Graph& graph, const ExportMetaGraphOptions& options);

struct ImportMetaGraphOptions {
  std::string import_scope{};  // like ImportOptions::scope; also a prefix for the names in collections
  bool clear_devices = false;
  std::map<std::string, Output> input_map{};  // like ImportOptions::input_map; must contain "$unbound_inputs_NAME"
};

struct ImportedMetaGraph {
  ImportedGraph graph;
  VariablesByName variables;  // the global variables
};

// Adds operations and collections to `graph`. InvalidArgumentError: input_map lacks some of the "unbound inputs"; a
// collection names something that does not exist. Otherwise throws what import_graph_def throws.
ImportedMetaGraph import_scoped_meta_graph(Graph& graph, const proto::MetaGraphDef& meta,
                                           const ImportMetaGraphOptions& options = {});

// Copies a scope of `from` to another scope of `to` (which may be the same graph), and returns the new variables.
// InvalidArgumentError: it is the same scope of the same graph ("need to be different"), or it has inputs from outside.
VariablesByName copy_scoped_meta_graph(const Graph& from, const std::string& from_scope, Graph& to,
                                       const std::string& to_scope);

}  // namespace longhaul
