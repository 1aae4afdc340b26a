#pragma once

#include <memory>
#include <string>

#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/graph/meta_graph/meta_graph.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Adds the graph and the collections of a meta graph to `graph`, and returns the saver with which it was exported:
//
//   Graph graph;
//   const auto saver = import_meta_graph(graph, "runs/demo/model.ckpt-1200.meta");
//   ... a session on the graph ...
//   saver->restore(*session, "runs/demo/model.ckpt-1200");
//
// For a meta graph without a saver, returns a new saver for all variables that `graph` then has, or nullptr if there
// are none. The program finds operations by their names or in the collections, and continues training from there.
// `saver_options` has the settings that a SaverDef lacks: files, clock, the format of steps in names.
//
// Throws what read_meta_graph and import_scoped_meta_graph throw. NotFoundError, InvalidArgumentError: the saver's
// operations are missing.
std::unique_ptr<Saver> import_meta_graph(Graph& graph, const proto::MetaGraphDef& meta,
                                         const ImportMetaGraphOptions& options = {}, SaverOptions saver_options = {});
std::unique_ptr<Saver> import_meta_graph(Graph& graph, const std::string& path,
                                         const ImportMetaGraphOptions& options = {}, SaverOptions saver_options = {});

// Exports the saver's graph together with the saver. `options.saver_def` is ignored.
proto::MetaGraphDef export_meta_graph(const Saver& saver, ExportMetaGraphOptions options = {});

}  // namespace longhaul
