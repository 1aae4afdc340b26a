#include "longhaul/train/environment_record.h"

#include <fmt/ranges.h>
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <set>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/checkpoint_files.h"
#include "longhaul/graph/graph_def.h"
#include "longhaul/io/crc64.h"
#include "longhaul/proto/serialize.h"

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
  for (const auto& [name, value] : environment) text += name + ": " + value + "\n";
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

std::optional<Environment> read_environment(FileSystem& files, const std::string& path) {
  proto::MetaGraphDef meta_graph;
  try {
    if (!files.exists(path) || !meta_graph.ParseFromString(read_file(files, path))) return std::nullopt;
  } catch (const Error& error) {
    log_debug("what {} was made with is not known: {}", path, error.what());
    return std::nullopt;
  }
  return recorded_environment(meta_graph);
}

}  // namespace

std::string graph_fingerprint(const Graph& graph) {
  uint64_t crc = crc64(std::to_string(graph.seed()));
  const proto::GraphDef graph_def = to_graph_def(graph);
  const std::set<std::string> savers = scopes_of_savers(graph_def);
  for (const proto::NodeDef& node : graph_def.node()) {
    const bool is_for_saving =
        node.op() == "RandomState" ||
        std::any_of(savers.begin(), savers.end(), [&](auto& scope) { return node.name().starts_with(scope); });
    if (!is_for_saving && !is_string_constant(node)) crc = extend_crc64(crc, proto::serialize(node));
  }
  return fmt::format("{:016x}", crc);
}

Environment environment_of(const std::string& graph_fingerprint) {
  Environment result = environment();
  result[kGraph] = graph_fingerprint;
  result["longhaul"] = LONGHAUL_VERSION;
  return result;
}

std::vector<std::string> differences(const Environment& then, const Environment& now) {
  std::vector<std::string> sentences;
  Environment all = then;
  all.insert(now.begin(), now.end());
  for (const auto& [name, value] : all) {
    const auto before = then.find(name), after = now.find(name);
    if (before != then.end() && after != now.end() && before->second == after->second) continue;
    sentences.push_back(fmt::format("it was made with {} {}, this run has {}", name,
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
  google::protobuf::StringValue text;
  if (!meta_graph.meta_info_def().any_info().UnpackTo(&text)) return std::nullopt;
  return environment_from_text(text.value());
}

void warn_of_differences(FileSystem& files, const std::string& prefix, const Environment& now) {
  const auto then = read_environment(files, meta_graph_filename(prefix));
  const std::vector<std::string> found = then ? differences(*then, now) : std::vector<std::string>();
  if (found.empty()) return;
  log_warning("{} is restored, but the training will not go on to the bit as it would have: {}", prefix,
              fmt::join(found, "; "));
}

}  // namespace longhaul
