#include "longhaul/train/saving/meta_graph.h"

#include <fmt/format.h>

#include "longhaul/base/log.h"
#include "longhaul/graph/meta_graph/collection_def.h"

namespace longhaul {
namespace {

bool names_operations(const proto::MetaGraphDef& meta) {
  return meta.has_saver_def() && !meta.saver_def().restore_op_name().empty();
}

bool has_something_to_save(const Graph& graph) {
  return !graph.collection(collections::kGlobalVariables).empty() ||
         !graph.collection(collections::kSaveableObjects).empty();
}

}  // namespace

std::unique_ptr<Saver> import_meta_graph(Graph& graph, const proto::MetaGraphDef& meta,
                                         const ImportMetaGraphOptions& options, SaverOptions saver_options) {
  const ImportedMetaGraph imported = import_scoped_meta_graph(graph, meta, options);
  if (names_operations(meta)) {
    const auto add_prefix = [&](std::string_view name) { return imported.graph.prefix + std::string(name); };
    return std::make_unique<Saver>(graph, *map_names(meta.saver_def(), add_prefix), std::move(saver_options));
  }
  if (!has_something_to_save(graph)) {
    log_info("Saver not created because there are no variables in the graph to restore");
    return nullptr;
  }
  saver_options.graph = &graph;
  return std::make_unique<Saver>(std::move(saver_options));
}

std::unique_ptr<Saver> import_meta_graph(Graph& graph, const std::string& path, const ImportMetaGraphOptions& options,
                                         SaverOptions saver_options) {
  const proto::MetaGraphDef meta = read_meta_graph(*saver_options.files, path);
  try {
    return import_meta_graph(graph, meta, options, std::move(saver_options));
  } catch (const Error& error) {
    throw_error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

proto::MetaGraphDef export_meta_graph(const Saver& saver, ExportMetaGraphOptions options) {
  options.saver_def = saver.to_proto();
  return export_meta_graph(saver.graph(), options);
}

}  // namespace longhaul
