#include "longhaul/ops/aten_op.h"

namespace longhaul::ops {
namespace {

struct AddArgument {
  const std::string& name;
  std::vector<Output>& inputs;
  std::vector<std::string>& edges;
  Attrs& attrs;

  void operator()(const Output& input) const {
    inputs.push_back(input);
    edges.push_back(name);
  }
  void operator()(const std::vector<Output>& list) const {
    for (const Output& input : list) (*this)(input);
  }
  template <typename Constant>
  void operator()(const Constant& constant) const {
    attrs[name] = constant;
  }
};

}  // namespace

Operation aten(const Scope& scope, const std::string& schema, std::string_view name, const NamedArgs& arguments) {
  std::vector<Output> inputs;
  std::vector<std::string> edges;
  Attrs attrs;
  for (const auto& [argument, value] : arguments) std::visit(AddArgument{argument, inputs, edges, attrs}, value);
  attrs["edges"] = std::move(edges);
  return scope.add(schema, name, std::move(inputs), std::move(attrs));
}

}  // namespace longhaul::ops
