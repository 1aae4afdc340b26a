#include "longhaul/train/saved_state/environment_record.h"

#include <fmt/ranges.h>
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/type_attrs.h"
#include "longhaul/graph/meta_graph/meta_info.h"
#include "longhaul/io/records/crc64.h"
#include "longhaul/ops/external_variable.h"
#include "longhaul/ops/input/data_position.h"
#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/train/saved_state/nan_watch.h"

namespace longhaul {
namespace {

constexpr const char* kGraph = "graph";

bool is_string_constant(const proto::NodeDef& node) {
  const auto dtype = node.attr().find("dtype");
  return node.op() == "Const" && dtype != node.attr().end() && dtype->second.type() == proto::DT_STRING;
}

// "save/", "save_1/": savers are made and made again, and add their operations each time.
std::set<std::string> scopes_of_savers(const proto::GraphDef& graph) {
  std::set<std::string> scopes;
  for (const proto::NodeDef& node : graph.node()) {
    const size_t slash = node.name().rfind('/');
    if (node.op() == "SaveV2" && slash != std::string::npos) scopes.insert(node.name().substr(0, slash + 1));
  }
  return scopes;
}

std::string to_text(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) text += fmt::format("{}: {}\n", name, value);
  return text;
}

Environment environment_from_text(std::string_view text) {
  Environment environment;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t colon = line.find(": ");
    if (colon != std::string_view::npos) environment.emplace(line.substr(0, colon), line.substr(colon + 2));
  }
  return environment;
}

std::optional<Environment> environment_from(const google::protobuf::Any& any_info) {
  google::protobuf::StringValue text;
  if (!any_info.UnpackTo(&text)) return std::nullopt;
  return environment_from_text(text.value());
}

// Calls `take` with each node that says what is computed, as far as it counts, in order.
void for_each_that_counts(const proto::GraphDef& graph_def,
                          const std::function<void(const proto::NodeDef& counted)>& take) {
  const std::set<std::string> savers = scopes_of_savers(graph_def);
  for (const proto::NodeDef& node : graph_def.node()) {
    const bool is_for_saving =
        node.op() == "RandomState" ||
        std::any_of(savers.begin(), savers.end(), [&](auto& scope) { return node.name().starts_with(scope); });
    if (is_for_saving || is_string_constant(node)) continue;
    proto::NodeDef counted = node;
    counted.mutable_attr()->erase(kExpectedShapeAttr);
    remove_type_attrs(&counted);
    for (const char* fact : ops::kInputFacts) counted.mutable_attr()->erase(ops::input_fact_attr(fact));
    take(counted);
  }
}

struct CountedNode {
  std::string type, bytes;
};

std::map<std::string, CountedNode> nodes_of(const proto::GraphDef& graph_def) {
  std::map<std::string, CountedNode> nodes;
  for_each_that_counts(graph_def,
                       [&](const proto::NodeDef& node) { nodes[node.name()] = {node.op(), proto::serialize(node)}; });
  return nodes;
}

std::string some_of(const char* what, const std::vector<std::string>& names) {
  constexpr size_t kMostNames = 5;
  if (names.empty()) return "";
  return fmt::format("; {}: {}", what, first_names(names, kMostNames));
}

// The graph beside a checkpoint, if it is one that it takes little memory to read.
std::optional<proto::GraphDef> read_small_graph(FileSystem& files, const std::string& path) {
  constexpr uint64_t kMostBytes = 4 << 20;
  proto::MetaGraphDef meta_graph;
  try {
    if (files.open(path)->size() > kMostBytes) return std::nullopt;
    if (!proto::parse_within_limits(read_file(files, path), &meta_graph)) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  return std::move(*meta_graph.mutable_graph_def());
}

bool is_summary(const CountedNode& node) {
  return node.type.ends_with("Summary");
}

// What is not the same in two graphs.
struct GraphChanges {
  GraphChanges(const proto::GraphDef& then, const Graph& now);

  bool none() const { return gone.empty() && fresh.empty() && changed.empty(); }

  std::vector<std::string> gone, fresh, changed;  // names of operations
  bool trains_the_same = true;                    // they are summaries, and operations that compute their values
};

// A new operation that an old one uses is an input of it, which has changed then.
GraphChanges::GraphChanges(const proto::GraphDef& then, const Graph& now) {
  const std::map<std::string, CountedNode> before = nodes_of(then),
                                           after = nodes_of(to_meta_graph_def(now).graph_def());
  for (const auto& [name, node] : before) {
    const auto found = after.find(name);
    if (found != after.end() && found->second.bytes == node.bytes) continue;
    (found == after.end() ? gone : changed).push_back(name);
    trains_the_same = trains_the_same && is_summary(node);
  }
  for (const auto& [name, node] : after) {
    if (before.contains(name)) continue;
    fresh.push_back(name);
    trains_the_same = trains_the_same && (is_summary(node) || now.find_operation(name).traits() == kPure);
  }
}

// How two graphs whose fingerprints differ are not the same; nullopt: in nothing that matters to the training.
std::optional<std::string> graph_difference(FileSystem& files, const std::string& path, const Graph& graph) {
  const auto then = read_small_graph(files, path);
  if (!then) return "it was saved with another graph";
  const GraphChanges changes(*then, graph);
  if (changes.none()) {
    return "it was saved with another graph seed, or with the same operations in another order";
  }
  if (changes.trains_the_same) return std::nullopt;
  return "it was saved with another graph" + some_of("removed operations", changes.gone) +
         some_of("new operations", changes.fresh) +
         some_of("operations with changed values, types or inputs", changes.changed);
}

constexpr const char* kOtherExamples =
    "its position in that input now means other examples: some of this epoch are repeated, and others are omitted";

// Earlier versions recorded no inputs and no compiler, and threads that no result depends on.
bool other_versions_lack(const std::string& fact) {
  return ops::is_input_fact(fact) || fact == "compiler" || fact == "threads between operations";
}

void remove_what_other_versions_lack(Environment& then, Environment& now) {
  const auto remove_from = [](Environment& one, const Environment& other) {
    std::erase_if(one,
                  [&](const auto& fact) { return other_versions_lack(fact.first) && !other.contains(fact.first); });
  };
  remove_from(then, now);
  remove_from(now, then);
}

// Whether an input has other examples at a position.
bool has_other_examples(const Environment& then, const Environment& now) {
  return std::any_of(now.begin(), now.end(), [&](const auto& fact) {
    if (!ops::is_input_fact(fact.first) || then.at(fact.first) == fact.second) return false;
    return !fact.first.ends_with(" batch_size") && !fact.first.ends_with(" num_replicas");
  });
}

std::string fact_of(const Environment& facts, const char* name) {
  const auto found = facts.find(name);
  return found != facts.end() ? found->second : "";
}

// What the user can do about the differences.
std::vector<std::string> remedies(const Environment& then, const Environment& now) {
  std::vector<std::string> sentences;
  // A processor that has AVX512 has AVX2 too.
  if (fact_of(then, "vector instructions") == "AVX2" && fact_of(now, "vector instructions") == "AVX512")
    sentences.emplace_back("ATEN_CPU_CAPABILITY=avx2 gives this run the same ones");
  const std::string threads = fact_of(then, "threads");
  if (!threads.empty() && threads != fact_of(now, "threads"))
    sentences.push_back(fmt::format("set_intra_op_threads({}) gives this run as many", threads));
  // No setting makes MKL round as OpenBLAS does.
  const std::string blas = fact_of(then, "BLAS").substr(0, fact_of(then, "BLAS").find(' '));
  if (!blas.empty() && !fact_of(now, "BLAS").starts_with(blas))
    sentences.push_back(fmt::format("a libtorch that calls {} gives this run the same BLAS", blas));
  return sentences;
}

}  // namespace

std::string graph_fingerprint(const Graph& graph) {
  uint64_t crc = crc64(std::to_string(graph.seed()));
  for_each_that_counts(to_graph_def(graph),
                       [&](const proto::NodeDef& node) { crc = extend_crc64(crc, proto::serialize(node)); });
  return fmt::format("{:016x}", crc);
}

bool goes_on_training(const Graph& graph, const std::vector<SaverNodes::SavedTensor>& restored) {
  std::unordered_set<Operation, OperationHash> is_restored, is_local;
  for (const auto& tensor : restored) is_restored.insert(variable_of(tensor.read));
  for (const VariableInfo& variable : ops::local_variables(graph)) is_local.insert(variable.ref.op());
  bool trains = false;
  for (const Operation& op : graph.operations()) {
    if ((op.traits() & kWritesVariable) == 0 || op.type() == "Assign") continue;
    for (int i = 0; i < op.ref_inputs(); ++i) {
      const Operation variable = op.inputs()[static_cast<size_t>(i)].op();
      if (variable.type() != "VariableV2" || is_local.contains(variable)) continue;
      if (!is_restored.contains(variable)) return false;
      trains = true;
    }
  }
  return trains;
}

Environment environment_of(const std::string& graph_fingerprint) {
  Environment result = environment();
  result[kGraph] = graph_fingerprint;
  result["longhaul"] = LONGHAUL_VERSION;
  return result;
}

std::optional<Environment> recorded_environment(FileSystem& files, const std::string& prefix) {
  const std::string path = meta_graph_filename(prefix);
  try {
    const auto any_info = read_any_info(files, path);
    return any_info ? environment_from(*any_info) : std::nullopt;
  } catch (const Error& error) {
    log_debug("the environment of {} is unknown: {}", path, error.what());
    return std::nullopt;
  }
}

std::vector<std::string> differences(const Environment& then, const Environment& now) {
  std::vector<std::string> sentences;
  Environment all = then;
  all.insert(now.begin(), now.end());
  for (const auto& [name, value] : all) {
    const auto before = then.find(name), after = now.find(name);
    if (before != then.end() && after != now.end() && before->second == after->second) continue;
    sentences.push_back(fmt::format("it was saved with {} {}, this run has {}", name,
                                    before == then.end() ? "unknown" : before->second,
                                    after == now.end() ? "none" : after->second));
  }
  return sentences;
}

void record_environment(const Environment& environment, proto::MetaGraphDef* meta_graph) {
  google::protobuf::StringValue text;
  text.set_value(to_text(environment));
  meta_graph->mutable_meta_info_def()->mutable_any_info()->PackFrom(text);
}

std::optional<Environment> recorded_environment(const proto::MetaGraphDef& meta_graph) {
  return environment_from(meta_graph.meta_info_def().any_info());
}

void warn_of_differences(FileSystem& files, const std::string& prefix, Environment now, const Graph& graph) {
  const std::string path = meta_graph_filename(prefix);
  auto then = recorded_environment(files, prefix);
  if (!then) return;
  remove_nan_record(*then);
  remove_what_other_versions_lack(*then, now);
  const bool other_graph = std::exchange((*then)[kGraph], "") != std::exchange(now[kGraph], "");
  std::vector<std::string> found = differences(*then, now);
  for (std::string& remedy : remedies(*then, now)) found.push_back(std::move(remedy));
  if (has_other_examples(*then, now)) found.push_back(kOtherExamples);
  if (other_graph) {
    if (auto difference = graph_difference(files, path, graph)) found.push_back(std::move(*difference));
  }
  if (found.empty()) return;
  log_warning("{} is restored, but training will not continue bit for bit as it would have: {}", prefix,
              fmt::join(found, "; "));
}

}  // namespace longhaul
