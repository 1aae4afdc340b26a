#include "longhaul/graph/graph_def/import_check.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/first_names.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/lent_functions.h"
#include "longhaul/graph/op_catalog.h"

namespace longhaul {
namespace {

constexpr size_t kMostNamed = 10;

// Catalogs know a call by its spec alone, so they are asked with one that is empty: what they think of it does not
// matter, as long as it is theirs.
bool type_exists(const std::string& type) {
  try {
    resolve_operation({.type = type, .name = "import"});
  } catch (const NotFoundError&) {
    return false;
  } catch (const Error&) {
  }
  return true;
}

std::string missing_types(const proto::GraphDef& graph_def) {
  std::map<std::string, int> nodes_by_type;
  for (const auto& node : graph_def.node()) ++nodes_by_type[node.op()];
  std::vector<std::string> missing;
  bool loops = false;
  for (const auto& [type, nodes] : nodes_by_type) {
    if (type_exists(type)) continue;
    missing.push_back(fmt::format("{} ({} {})", excerpt(type), nodes, nodes == 1 ? "node" : "nodes"));
    loops = loops || type == "NextIteration";
  }
  if (missing.empty()) return "";
  return fmt::format(
      "unknown types of operation: {}{}{}. Its checkpoint can be used: build the model here with the same variable "
      "names, and restore them",
      first_names(missing), loops ? "; loops (NextIteration) are not supported" : "", hint_of_missing_catalogs());
}

std::string library_functions(const proto::GraphDef& graph_def) {
  std::vector<std::string> names;
  for (const auto& function : graph_def.library().function()) names.push_back(excerpt(function.signature().name()));
  return names.empty() ? "" : "functions, but these are not supported: " + first_names(names, kMostNamed);
}

std::string host_functions(const proto::GraphDef& graph_def, bool is_part) {
  std::vector<std::string> names;
  for (const auto& node : graph_def.node()) {
    for (const auto& [name, attr] : node.attr()) {
      if (attr.value_case() != proto::AttrValue::kPlaceholder) continue;
      if (is_part && node.op() == "HostFunction" && find_lent_function(attr.placeholder())) continue;
      names.push_back(excerpt(node.name()));
    }
  }
  if (names.empty()) return "";
  return (is_part ? "nodes that call functions of the program, but servers run only those of ops::host_function(), on "
                    "the program's own task: place them there (Scope::with_device()), or feed what they return through "
                    "placeholders: "
                  : "nodes that call functions of the program, but these can neither be stored in a file nor run on a "
                    "server (feed what they return through placeholders): ") +
         first_names(names, kMostNamed);
}

}  // namespace

void check_supported(const proto::GraphDef& graph_def, bool is_part) {
  std::vector<std::string> problems;
  for (const std::string& problem :
       {missing_types(graph_def), library_functions(graph_def), host_functions(graph_def, is_part)}) {
    if (!problem.empty()) problems.push_back(problem);
  }
  if (!problems.empty()) {
    throw UnimplementedError(fmt::format("the graph cannot be imported; it has {}", fmt::join(problems, "; and ")));
  }
}

void check_no_transfers(const proto::GraphDef& graph_def) {
  for (const auto& node : graph_def.node()) {
    const std::string& type = node.op();
    if (type != "_Send" && type != "_Recv" && type != "_SendControl" && type != "_RecvControl") continue;
    throw InvalidArgumentError(
        fmt::format("node {} ({}): only sessions make such operations, for a run on several tasks. Export the graph of "
                    "the program instead of a partition graph",
                    excerpt(node.name()), type));
  }
}

void check_version(const proto::GraphDef& graph_def) {
  const proto::VersionDef& versions = graph_def.versions();
  if (versions.min_consumer() > kGraphVersion) {
    throw InvalidArgumentError(fmt::format("the graph needs a reader of version {} or later, but this is version {}",
                                           versions.min_consumer(), kGraphVersion));
  }
  for (int bad : versions.bad_consumers()) {
    if (bad == kGraphVersion)
      throw InvalidArgumentError(fmt::format("the graph does not allow readers of version {}", bad));
  }
}

void check_node_count(const proto::GraphDef& graph_def, int64_t most) {
  if (graph_def.node_size() <= most) return;
  throw ResourceExhaustedError(
      fmt::format("the graph has {} nodes, more than {} (ImportOptions::most_nodes)", graph_def.node_size(), most));
}

uint64_t constant_bytes(const proto::TensorProto& tensor) {
  if (!is_known_dtype(tensor.dtype())) return 0;
  const int64_t count = from_proto(tensor.tensor_shape()).num_elements();
  if (count < 0) return 0;  // refused where it is converted
  const auto dtype = static_cast<DType>(tensor.dtype());
  const uint64_t size = dtype == kString ? sizeof(std::string) : dtype_size(dtype);
  uint64_t bytes = 0, copies = 0;
  if (const int given = tensor.string_val_size(); given > 0 && count > given) {  // the last one stands for the others
    const uint64_t last = tensor.string_val(given - 1).size();
    if (__builtin_mul_overflow(static_cast<uint64_t>(count - given), last, &copies)) return UINT64_MAX;
  }
  const bool fits = !__builtin_mul_overflow(static_cast<uint64_t>(count), size, &bytes) &&
                    !__builtin_add_overflow(bytes, copies, &bytes);
  return fits ? bytes : UINT64_MAX;
}

void check_constants(const proto::GraphDef& graph_def, uint64_t most_bytes) {
  uint64_t total = 0;
  for (const auto& node : graph_def.node()) {
    for (const auto& [name, attr] : node.attr()) {
      if (attr.value_case() != proto::AttrValue::kTensor) continue;
      if (__builtin_add_overflow(total, constant_bytes(attr.tensor()), &total) || total > most_bytes) {
        throw ResourceExhaustedError(
            fmt::format("the graph's constants take more than {} bytes (ImportOptions::most_constant_bytes); node {} "
                        "exceeds the limit",
                        most_bytes, excerpt(node.name())));
      }
    }
  }
}

}  // namespace longhaul
