#include "longhaul/graph/graph_def/type_attrs.h"

#include <map>
#include <string>
#include <vector>

#include "longhaul/graph/graph_def/attr_value.h"

namespace longhaul {
namespace {

constexpr size_t kAll = SIZE_MAX;  // the attr counts the inputs

struct TypeAttr {
  std::string name;
  size_t input;
};
using TypeAttrs = std::vector<TypeAttr>;

// Which attr has the type of which input, by the operation's type.
const std::map<std::string, TypeAttrs>& type_attrs() {
  static const TypeAttrs first = {{"T", 0}};
  const auto rows = [](size_t indices) { return TypeAttrs{{"T", 0}, {"Tindices", indices}}; };
  static const auto* const attrs = new std::map<std::string, TypeAttrs>{
      {"Assign", first},
      {"AssignAdd", first},
      {"AssignSub", first},
      {"CountUpTo", first},
      {"Identity", first},
      {"IsVariableInitialized", TypeAttrs{{"dtype", 0}}},
      {"Shape", first},
      {"StringJoin", TypeAttrs{{"N", kAll}}},
      {"ApplyAdagrad", first},
      {"ApplyAdam", first},
      {"ApplyGradientDescent", first},
      {"ApplyMomentum", first},
      {"ApplyRMSProp", first},
      {"ApplyCenteredRMSProp", first},
      {"ApplyAdadelta", first},
      {"ApplyFtrl", first},
      {"ApplyFtrlV2", first},
      {"ScatterSub", rows(1)},
      {"SparseApplyAdagrad", rows(4)},
      {"SparseApplyMomentum", rows(4)},
      {"SparseApplyRMSProp", rows(8)},
      {"SparseApplyCenteredRMSProp", rows(9)},
      {"SparseApplyAdadelta", rows(7)},
      {"SparseApplyFtrl", rows(4)},
      {"SparseApplyFtrlV2", rows(4)},
      {"UnsortedSegmentSum", TypeAttrs{{"T", 0}, {"Tindices", 1}, {"Tnumsegments", 2}}},
  };
  return *attrs;
}

proto::AttrValue value_of(const TypeAttr& attr, const std::vector<Output>& inputs) {
  if (attr.input == kAll) return attr_to_proto(static_cast<int64_t>(inputs.size()));
  return attr_to_proto(inputs[attr.input].dtype());
}

}  // namespace

void add_type_attrs(const Operation& op, proto::NodeDef* node) {
  const auto type = type_attrs().find(op.type());
  if (type == type_attrs().end()) return;
  for (const TypeAttr& attr : type->second) {
    if (!node->attr().contains(attr.name)) (*node->mutable_attr())[attr.name] = value_of(attr, op.inputs());
  }
}

void remove_type_attrs(proto::NodeDef* node) {
  const auto type = type_attrs().find(node->op());
  if (type == type_attrs().end()) return;
  for (const TypeAttr& attr : type->second) node->mutable_attr()->erase(attr.name);
}

}  // namespace longhaul
