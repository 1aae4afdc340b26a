// A GraphDef, binary or as text. What can be imported can be exported and imported again.
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/graph/graph_def/import_graph_def.h"
#include "tests/fuzz/quiet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  Graph graph, again;
  try {
    const auto graph_def = parse_graph_def({reinterpret_cast<const char*>(data), size});
    import_graph_def(graph, graph_def, {.most_constant_bytes = 1 << 20});
  } catch (const Error&) {
    return 0;
  }
  import_graph_def(again, to_graph_def(graph));
  return 0;
}
