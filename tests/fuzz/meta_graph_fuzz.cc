// A MetaGraphDef, binary or as text: parsed, and looked through in a file for what it was made with.
#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/graph/meta_graph/meta_graph.h"
#include "longhaul/graph/meta_graph/meta_info.h"
#include "longhaul/testing/memory_file_system.h"
#include "tests/fuzz/quiet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  testing::MemoryFileSystem files;
  files.put("x.meta", {reinterpret_cast<const char*>(data), size});
  read_any_info(files, "x.meta");
  Graph graph;
  try {
    const auto meta = parse_meta_graph({reinterpret_cast<const char*>(data), size});
    import_scoped_meta_graph(graph, meta, {.import_scope = "s"});
    export_meta_graph(graph, {.export_scope = "s"});
  } catch (const Error&) {
  }
  return 0;
}
