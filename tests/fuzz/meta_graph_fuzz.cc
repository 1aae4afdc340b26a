// A MetaGraphDef, binary or as text.
#include "longhaul/graph/graph_files.h"
#include "longhaul/graph/meta_graph.h"
#include "tests/fuzz/quiet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  Graph graph;
  try {
    const auto meta = parse_meta_graph({reinterpret_cast<const char*>(data), size});
    import_scoped_meta_graph(graph, meta, {.import_scope = "s"});
    export_meta_graph(graph, {.export_scope = "s"});
  } catch (const Error&) {
  }
  return 0;
}
