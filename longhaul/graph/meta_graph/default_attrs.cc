#include "longhaul/graph/meta_graph/default_attrs.h"

#include <map>
#include <string>

#include "longhaul/graph/graph_def/attr_value.h"
#include "longhaul/proto/serialize.h"

namespace longhaul {
namespace {

using Defaults = std::map<std::string, Attrs>;

// From TensorFlow's registrations (REGISTER_OP) of the types that exist here.
const Defaults& defaults_by_type() {
  static const Attrs resource = {{"container", std::string()}, {"shared_name", std::string()}};
  static const Attrs accumulator = {
      {"container", std::string()}, {"shared_name", std::string()}, {"reduction_type", std::string("MEAN")}};
  static const Attrs apply = {{"use_locking", false}};
  static const Defaults* const defaults = new Defaults{
      {"VariableV2", resource},
      {"Assign", {{"validate_shape", true}, {"use_locking", true}}},
      {"AssignAdd", apply},
      {"AssignSub", apply},
      {"ApplyGradientDescent", apply},
      {"ApplyAdagrad", apply},
      {"ApplyRMSProp", apply},
      {"ApplyCenteredRMSProp", apply},
      {"ApplyAdadelta", apply},
      {"ApplyFtrl", apply},
      {"ApplyFtrlV2", apply},
      {"ScatterSub", apply},
      {"SparseApplyAdagrad", {{"use_locking", false}, {"update_slots", true}}},
      {"SparseApplyRMSProp", apply},
      {"SparseApplyCenteredRMSProp", apply},
      {"SparseApplyAdadelta", apply},
      {"SparseApplyFtrl", apply},
      {"SparseApplyFtrlV2", apply},
      {"SparseApplyMomentum", {{"use_locking", false}, {"use_nesterov", false}}},
      {"UnsortedSegmentSum", {{"Tnumsegments", kInt32}}},
      {"ApplyMomentum", {{"use_locking", false}, {"use_nesterov", false}}},
      {"ApplyAdam", {{"use_locking", false}, {"use_nesterov", false}}},
      {"ImageSummary", {{"max_images", int64_t{3}}}},
      {"AudioSummaryV2", {{"max_outputs", int64_t{3}}}},
      {"HashTableV2", resource},
      {"MutableHashTableV2", resource},
      {"ConditionalAccumulator", accumulator},
      {"SparseConditionalAccumulator", accumulator},
      {"FIFOQueueV2", resource},
      {"PaddingFIFOQueueV2", resource},
      {"RandomShuffleQueueV2", resource},
      {"PriorityQueueV2", resource},
      {"TextLineReaderV2", resource},
      {"TFRecordReaderV2", resource},
      {"FixedLengthRecordReaderV2", resource},
      {"WholeFileReaderV2", resource},
      {"IdentityReaderV2", resource},
  };
  return *defaults;
}

}  // namespace

void strip_default_attrs(proto::NodeDef* node) {
  const auto type = defaults_by_type().find(node->op());
  if (type == defaults_by_type().end()) return;
  for (const auto& [name, value] : type->second) {
    const auto attr = node->attr().find(name);
    if (attr == node->attr().end()) continue;
    if (proto::serialize(attr->second) == proto::serialize(attr_to_proto(value))) node->mutable_attr()->erase(name);
  }
}

}  // namespace longhaul
