#include "longhaul/ops/gradients/backward.h"

#include <algorithm>
#include <utility>

#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {
namespace {

struct ToArg {
  Arg operator()(const int64_t& value) const { return value; }
  Arg operator()(const double& value) const { return value; }
  Arg operator()(const bool& value) const { return value; }
  Arg operator()(const std::string& value) const { return value; }
  Arg operator()(const DType& value) const { return value; }
  Arg operator()(const std::vector<int64_t>& value) const { return value; }
  template <typename T>
  Arg operator()(const T&) const {
    throw InternalError("an operator's argument has a constant of an unexpected kind");
  }
};

// The dimensions of `from` over which a sum leads back to `to`, before which `from` was broadcast; false: the static
// shapes do not say.
struct BroadcastSum {
  std::vector<int64_t> leading;  // `to` lacks them
  std::vector<int64_t> ones;     // `to` has 1 there
};
bool find_reduction(const Shape& from, const Shape& to, BroadcastSum* reduction) {
  if (!from.has_rank() || !to.has_rank() || from.rank() < to.rank()) return false;
  const int extra = from.rank() - to.rank();
  for (int i = 0; i < extra; ++i) reduction->leading.push_back(i);
  for (int i = 0; i < to.rank(); ++i) {
    const int64_t wide = from.dim(i + extra), narrow = to.dim(i);
    if (narrow == 1 && wide != 1) reduction->ones.push_back(i + extra);
    if (narrow < 0 && wide >= 0 && wide != 1) return false;
  }
  return true;
}

}  // namespace

Backward::Backward(const Scope& scope, Operation op, std::vector<Output> grads, std::vector<bool> needed)
    : scope_(scope), op_(op), grads_(std::move(grads)), needed_(std::move(needed)), given_(op.inputs().size()) {
  if (const auto* edges = op.find_attr<std::vector<std::string>>("edges")) edges_ = *edges;
  edges_.resize(op.inputs().size());
}

int Backward::find_edge(const std::string& argument) const {
  const auto it = std::find(edges_.begin(), edges_.end(), argument);
  return it == edges_.end() ? -1 : static_cast<int>(it - edges_.begin());
}

bool Backward::needs(const std::string& argument) const {
  for (size_t i = 0; i < edges_.size(); ++i) {
    if (edges_[i] == argument && needed_[i]) return true;
  }
  return false;
}

Output Backward::input(const std::string& argument) const {
  const int edge = find_edge(argument);
  return edge < 0 ? Output() : op_.inputs()[static_cast<size_t>(edge)];
}

Arg Backward::argument(const std::string& name, Arg otherwise) const {
  if (const Output edge = input(name); edge.valid()) return edge;
  const auto it = op_.attrs().find(name);
  return it == op_.attrs().end() ? std::move(otherwise) : std::visit(ToArg{}, it->second);
}

double Backward::number(const std::string& name, double otherwise) const {
  if (const auto* integer = op_.find_attr<int64_t>(name)) return static_cast<double>(*integer);
  return constant<double>(name, otherwise);
}

void Backward::give(const std::string& argument, Output gradient, int element) {
  const auto index = static_cast<size_t>(find_edge(argument) + element);
  if (needed_[index]) given_[index] = gradient;
}

void Backward::give_like(const std::string& argument, const Output& gradient) {
  give(argument, summed_like(gradient, input(argument)));
}

Output Backward::aten(const std::string& type, const NamedArgs& arguments) const {
  return aten_op(type, arguments).output();
}

Operation Backward::aten_op(const std::string& type, const NamedArgs& arguments) const {
  const size_t begin = type.find_first_not_of('_', type.find("::") + 2);
  const std::string name = type.substr(begin, type.find('.') - begin);
  return ops::aten(scope_, type, name, arguments);
}

Output Backward::times(const Output& a, const Output& b) const {
  return aten("aten::mul.Tensor", {{"self", a}, {"other", b}});
}

Output Backward::times(const Output& a, double factor) const {
  return factor == 1 ? a : aten("aten::mul.Scalar", {{"self", a}, {"other", factor}});
}

Output Backward::negative(const Output& a) const {
  return aten("aten::neg", {{"self", a}});
}

Output Backward::transposed(const Output& matrix) const {
  return aten("aten::t", {{"self", matrix}});
}

Arg Backward::sizes(const Output& of) const {
  if (of.shape().fully_defined()) return of.shape().dims();
  return ops::shape(scope_, of);
}

Arg Backward::reshape_sizes(const Output& of) const {
  const std::vector<int64_t>& dims = of.shape().dims();
  const bool one_unknown = of.shape().has_rank() && std::count(dims.begin(), dims.end(), -1) == 1 &&
                           std::count(dims.begin(), dims.end(), 0) == 0;
  return one_unknown ? Arg(dims) : sizes(of);
}

Output Backward::reshaped_like(const Output& value, const Output& like) const {
  return aten("aten::reshape", {{"self", value}, {"shape", reshape_sizes(like)}});
}

// Whether another operand has a known size where the input's is not known, so that the input's may be 1.
bool Backward::may_be_broadcast(const Output& input) const {
  const std::vector<int64_t>& dims = input.shape().dims();
  for (const Output& other : op_.inputs()) {
    const std::vector<int64_t>& sizes = other.shape().dims();
    for (size_t i = 1; i <= std::min(dims.size(), sizes.size()); ++i) {
      if (dims[dims.size() - i] < 0 && sizes[sizes.size() - i] > 1) return true;
    }
  }
  return false;
}

Output Backward::summed_like(const Output& gradient, const Output& input) const {
  Output sum = gradient;
  BroadcastSum reduction;
  if (may_be_broadcast(input) || !find_reduction(gradient.shape(), input.shape(), &reduction) ||
      (!reduction.leading.empty() && !reduction.ones.empty())) {
    sum = aten("aten::sum_to_size", {{"self", gradient}, {"size", sizes(input)}});
  } else if (!reduction.leading.empty() || !reduction.ones.empty()) {
    const bool keep = reduction.leading.empty();
    sum = aten("aten::sum.dim_IntList",
               {{"self", gradient}, {"dim", keep ? reduction.ones : reduction.leading}, {"keepdim", keep}});
  }
  if (sum.dtype() == input.dtype()) return sum;
  return aten("aten::to.dtype", {{"self", sum}, {"dtype", input.dtype()}});
}

}  // namespace longhaul::ops
