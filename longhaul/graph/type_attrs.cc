#include "longhaul/graph/type_attrs.h"

#include <map>
#include <string>

#include "longhaul/graph/attr_value.h"

namespace longhaul {
namespace {

// Which attr has the type of the first input, by the operation's type.
const std::map<std::string, std::string>& type_attrs() {
  static const auto* const attrs = new std::map<std::string, std::string>{
      {"Assign", "T"},
      {"AssignAdd", "T"},
      {"AssignSub", "T"},
      {"CountUpTo", "T"},
      {"Identity", "T"},
      {"IsVariableInitialized", "dtype"},
      {"Shape", "T"},
      {"ApplyAdagrad", "T"},
      {"ApplyAdam", "T"},
      {"ApplyGradientDescent", "T"},
      {"ApplyMomentum", "T"},
      {"ApplyRMSProp", "T"},
      {"ApplyCenteredRMSProp", "T"},
      {"ApplyAdadelta", "T"},
      {"ApplyFtrl", "T"},
      {"ApplyFtrlV2", "T"},
  };
  return *attrs;
}

}  // namespace

void add_type_attrs(const Operation& op, proto::NodeDef* node) {
  const auto type = type_attrs().find(op.type());
  if (type == type_attrs().end() || node->attr().contains(type->second)) return;
  (*node->mutable_attr())[type->second] = attr_to_proto(op.inputs().front().dtype());
}

void remove_type_attrs(proto::NodeDef* node) {
  const auto type = type_attrs().find(node->op());
  if (type != type_attrs().end()) node->mutable_attr()->erase(type->second);
}

}  // namespace longhaul
