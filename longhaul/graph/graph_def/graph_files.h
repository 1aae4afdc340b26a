#pragma once

#include <string>
#include <string_view>

#include "longhaul/graph/graph.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/graph.pb.h"
#include "longhaul/proto/meta_graph.pb.h"

namespace longhaul {

// Graphs in files are protos, binary or text; readers detect which. Unknown fields in the text form, from a newer
// TensorFlow, are skipped, and one warning names them. `name` is for messages. DataLossError: the contents are neither
// form ("Cannot parse file"), or nested deeper than 100 messages. ResourceExhaustedError: the graph would take more
// memory than 64 MiB plus 16 times its size (proto/parsed_size.h). This is checked before any memory is allocated.
proto::GraphDef parse_graph_def(std::string_view contents, const std::string& name = "GraphDef");
proto::MetaGraphDef parse_meta_graph(std::string_view contents, const std::string& name = "MetaGraphDef");

// NotFoundError: there is no such file ("does not exist"); if the path is that of another file of a checkpoint, the
// message names the meta graph. InvalidArgumentError: it is a directory. Otherwise throws as above, and what the file
// system throws.
proto::GraphDef read_graph_def(FileSystem& files, const std::string& path);
proto::MetaGraphDef read_meta_graph(FileSystem& files, const std::string& path);

struct WriteGraphOptions {
  bool as_text = true;
  FileSystem* files = &FileSystem::real();
};

// Replaces the file `name` in `directory`, which is created if needed, with its parents. A crash leaves the old file or
// the new one, intact. Returns the path.
std::string write_graph(const proto::GraphDef& graph_def, const std::string& directory, const std::string& name,
                        const WriteGraphOptions& options = {});
std::string write_graph(const Graph& graph, const std::string& directory, const std::string& name,
                        const WriteGraphOptions& options = {});

// The same for a meta graph, with a full path.
void write_meta_graph(const proto::MetaGraphDef& meta, const std::string& path,
                      const WriteGraphOptions& options = {.as_text = false});

}  // namespace longhaul
