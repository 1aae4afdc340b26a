#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

OpInfo resolve_summary(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_dtype(spec, 0, kString);
  return {{{kString, {}}}};
}

OpInfo resolve_merge_summary(const OperationSpec& spec) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) need_dtype(spec, i, kString);
  return {{{kString, {}}}};
}

}  // namespace

ResolverTable summary_ops() {
  return {
      {"ScalarSummary", resolve_summary},
      {"HistogramSummary", resolve_summary},
      {"MergeSummary", resolve_merge_summary},
  };
}

}  // namespace longhaul::builtin
