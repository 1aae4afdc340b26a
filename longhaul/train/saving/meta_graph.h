#pragma once

#include <memory>
#include <string>

#include "longhaul/graph/graph_files.h"
#include "longhaul/graph/meta_graph.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Adds the graph of a meta graph, and its collections, to `graph`, and gives back the saver that it was exported with:
//
//   Graph graph;
//   const auto saver = import_meta_graph(graph, "runs/demo/model.ckpt-1200.meta");
//   ... a session on the graph ...
//   saver->restore(*session, "runs/demo/model.ckpt-1200");
//
// A meta graph without one gets a saver of all variables that `graph` then has; nullptr: there are none. What is in the
// graph is found by the names that it was given, or in its collections, and training goes on from there.
// `saver_options` say what a SaverDef does not: files, clock, how steps are written.
//
// The errors are those of read_meta_graph and import_scoped_meta_graph; NotFoundError, InvalidArgumentError: the
// saver's operations are not there.
std::unique_ptr<Saver> import_meta_graph(Graph& graph, const proto::MetaGraphDef& meta,
                                         const ImportMetaGraphOptions& options = {}, SaverOptions saver_options = {});
std::unique_ptr<Saver> import_meta_graph(Graph& graph, const std::string& path,
                                         const ImportMetaGraphOptions& options = {}, SaverOptions saver_options = {});

// The saver's graph with the saver. `options.saver_def` is not looked at.
proto::MetaGraphDef export_meta_graph(const Saver& saver, ExportMetaGraphOptions options = {});

}  // namespace longhaul
