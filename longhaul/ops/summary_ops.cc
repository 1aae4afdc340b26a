#include "longhaul/ops/summary_ops.h"

#include <algorithm>

#include "longhaul/ops/state_ops.h"

namespace longhaul::summary {
namespace {

std::string clean_name(std::string_view name) {
  std::string clean(name);
  for (char& c : clean) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isalnum(byte) && c != '_' && c != '-' && c != '/' && c != '.') c = '_';
  }
  return clean.substr(std::min(clean.find_first_not_of('/'), clean.size()));
}

Output add_summary(const Scope& scope, const char* type, std::string_view name, const Output& value) {
  const std::string clean = clean_name(name);
  const std::string tag = scope.graph().unique_name(scope.prefix() + clean);
  const Scope inner = Scope(scope.graph()).within(tag);
  const Output tags = ops::constant(inner, Tensor::scalar(tag), "tags");
  const Output summary = scope.within(clean).add(type, "summary", {tags, value}).output();
  scope.graph().add_to_collection(collections::kSummaries, summary);
  return summary;
}

}  // namespace

Output scalar(const Scope& scope, std::string_view name, const Output& value) {
  return add_summary(scope, "ScalarSummary", name, value);
}

Output histogram(const Scope& scope, std::string_view name, const Output& values) {
  return add_summary(scope, "HistogramSummary", name, values);
}

Output merge(const Scope& scope, const std::vector<Output>& summaries, std::string_view name) {
  return scope.add("MergeSummary", name, summaries).output();
}

std::optional<Output> merge_all(const Scope& scope) {
  const auto summaries = scope.graph().collection_of<Output>(collections::kSummaries);
  if (summaries.empty()) return std::nullopt;
  return merge(scope.sub("Merge"), summaries, "MergeSummary");
}

}  // namespace longhaul::summary
