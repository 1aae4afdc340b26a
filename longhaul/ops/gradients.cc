#include "longhaul/ops/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/gradients/derivative.h"
#include "longhaul/ops/indexed_slices.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {
namespace {

bool is_complex(DType dtype) {
  return dtype == kComplex64 || dtype == kComplex128;
}

bool differentiable(DType dtype) {
  return is_floating(dtype) || is_complex(dtype);
}

bool has_complex(const Operation& op) {
  for (const Output& input : op.inputs()) {
    if (is_complex(input.dtype())) return true;
  }
  return false;
}

// Built-in operations that hand their first input on.
bool is_identity(const Operation& op) {
  return op.type() == "Identity" || op.type() == "PlaceholderWithDefault";
}

// A gradient of some rows (ops/indexed_slices.h).
bool sums_rows(const Operation& op) {
  return op.type() == "UnsortedSegmentSum";
}

// Operators that draw random numbers without saying so in their schema.
bool draws_secretly(const std::string& type) {
  static const auto* types = new std::set<std::string>{"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
                                                       "aten::feature_alpha_dropout", "aten::native_dropout"};
  return types->contains(type);
}

// Whether gradients can go from the operation's outputs to its inputs at all.
bool lets_gradients_pass(const Operation& op) {
  if (is_identity(op) || op.type() == "TapeGradient" || sums_rows(op)) return true;
  if (!op.type().starts_with("aten::")) return false;
  const auto it = derivatives().find(op.type());
  return it == derivatives().end() || it->second.function != nullptr;
}

class Walk {
 public:
  Walk(const Scope& scope, const std::vector<Output>& ys, const std::vector<Output>& xs)
      : scope_(scope), ys_(ys), xs_(xs.begin(), xs.end()) {
    find_ancestors();
    find_dependents();
  }

  void start(const std::vector<Output>& grad_ys) {
    for (size_t i = 0; i < ys_.size(); ++i) {
      const bool given = i < grad_ys.size() && grad_ys[i].valid();
      if (depends(ys_[i])) add_gradient(ys_[i], given ? grad_ys[i] : ones_like(ys_[i]));
    }
  }

  void run() {
    for (auto op = ancestors_.rbegin(); op != ancestors_.rend(); ++op) {
      if (depends_.contains(*op)) step_back(*op);
    }
  }

  // The whole gradient, once everything that uses the output has been walked.
  Output gradient_of(const Output& output) {
    const auto it = gradients_.find(output);
    if (it == gradients_.end()) return Output();
    std::vector<Output>& parts = it->second;
    if (parts.size() > 1) parts = {sum_of(parts)};
    return parts[0];
  }

 private:
  bool depends(const Output& output) const {
    return differentiable(output.dtype()) && (xs_.contains(output) || depends_.contains(output.op()));
  }

  Output sum_of(std::vector<Output> parts) const {
    if (const Output joined = join_slices(scope_, parts); joined.valid()) return joined;
    while (parts.size() > 1) {
      const Output last = parts.back();
      parts.pop_back();
      parts.back() = aten(scope_, "aten::add.Tensor", "add", {{"self", parts.back()}, {"other", last}}).output();
    }
    return parts[0];
  }

  // All that the ys are computed from, in order of creation, which is an order of dependencies.
  void find_ancestors() {
    std::unordered_set<Operation, OperationHash> seen;
    for (const Output& y : ys_) {
      if (seen.insert(y.op()).second) ancestors_.push_back(y.op());
    }
    for (size_t next = 0; next < ancestors_.size(); ++next) {
      const std::vector<Output>& inputs = ancestors_[next].inputs();
      if (!lets_gradients_pass(ancestors_[next])) continue;
      for (const Output& input : inputs) {
        if (seen.insert(input.op()).second) ancestors_.push_back(input.op());
      }
    }
    std::sort(ancestors_.begin(), ancestors_.end(),
              [](const Operation& a, const Operation& b) { return a.id() < b.id(); });
  }

  void find_dependents() {
    for (const Operation& op : ancestors_) {
      if (!lets_gradients_pass(op)) continue;
      for (const Output& input : op.inputs()) {
        if (depends(input)) depends_.insert(op);
      }
    }
  }

  Output ones_like(const Output& y) const {
    if (y.dtype() == kFloat && y.shape() == Shape{}) return constant(scope_, 1.f, "ones");
    return aten(scope_, "aten::ones_like", "ones_like", {{"self", y}}).output();
  }

  void add_gradient(const Output& output, const Output& gradient) {
    if (gradient.valid()) gradients_[output].push_back(gradient);
  }

  void step_back(const Operation& op) {
    std::vector<Output> grads;
    for (int i = 0; i < op.num_outputs(); ++i) grads.push_back(gradient_of(op.output(i)));
    if (std::none_of(grads.begin(), grads.end(), [](const Output& grad) { return grad.valid(); })) return;
    std::vector<bool> needed;
    for (const Output& input : op.inputs()) needed.push_back(depends(input));
    const std::vector<Output> found = differentiate(op, grads, needed);
    for (size_t i = 0; i < found.size(); ++i) {
      if (needed[i]) add_gradient(op.inputs()[i], found[i]);
    }
  }

  std::vector<Output> differentiate(const Operation& op, const std::vector<Output>& grads,
                                    const std::vector<bool>& needed) const {
    if (is_identity(op)) return {grads[0]};
    const Scope inner = scope_.within(op.name() + "_grad").with_device(op.device());
    if (sums_rows(op)) return {index_select(inner, grads[0], 0, op.inputs()[1]), Output(), Output()};
    const auto it = derivatives().find(op.type());
    if (it != derivatives().end() && covers(it->second, op)) {
      Backward backward(inner, op, grads, needed);
      if (it->second.function(backward)) return backward.given();
    }
    return use_tape(inner, op, grads, needed);
  }

  // The registered derivatives are those of real functions.
  static bool covers(const Derivative& derivative, const Operation& op) {
    const auto* edges = op.find_attr<std::vector<std::string>>("edges");
    return edges != nullptr && !has_complex(op) &&
           std::all_of(edges->begin(), edges->end(), [&](const std::string& edge) {
             return std::find(derivative.edges.begin(), derivative.edges.end(), edge) != derivative.edges.end();
           });
  }

  static std::vector<Output> use_tape(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                                      const std::vector<bool>& needed) {
    refuse_what_the_tape_cannot_do(op);
    std::vector<int64_t> wrt, outputs;
    std::vector<Output> inputs = op.inputs();
    for (size_t i = 0; i < needed.size(); ++i) {
      if (needed[i]) wrt.push_back(static_cast<int64_t>(i));
    }
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].valid()) continue;
      outputs.push_back(static_cast<int64_t>(i));
      inputs.push_back(grads[i]);
    }
    Attrs attrs = op.attrs();
    attrs["forward"] = op.type();
    attrs["wrt"] = wrt;
    attrs["num_inputs"] = static_cast<int64_t>(op.inputs().size());
    attrs["outputs"] = outputs;
    const Operation tape = scope.add("TapeGradient", "TapeGradient", std::move(inputs), std::move(attrs));
    std::vector<Output> found(needed.size());
    for (size_t i = 0; i < wrt.size(); ++i) found[static_cast<size_t>(wrt[i])] = tape.output(static_cast<int>(i));
    return found;
  }

  static void refuse_what_the_tape_cannot_do(const Operation& op) {
    if (op.type() == "TapeGradient") {
      throw UnimplementedError(
          fmt::format("{}: the gradient of {} comes from libtorch's autograd and has no gradient itself; only "
                      "operators with a registered derivative can be differentiated twice",
                      op.name(), op.attr<std::string>("forward")));
    }
    if ((op.traits() & kRandom) == 0 && !draws_secretly(op.type())) return;
    throw UnimplementedError(
        fmt::format("{} ({}) has no gradient, because it draws random numbers, which cannot be drawn again. Use "
                    "ops::dropout, or compute with the random tensor of ops::randn",
                    op.name(), op.type()));
  }

  const Scope scope_;
  const std::vector<Output>& ys_;
  const std::unordered_set<Output, OutputHash> xs_;
  std::vector<Operation> ancestors_;
  std::unordered_set<Operation, OperationHash> depends_;
  std::unordered_map<Output, std::vector<Output>, OutputHash> gradients_;
};

void check(const std::vector<Output>& ys, const std::vector<Output>& grad_ys) {
  for (size_t i = 0; i < ys.size(); ++i) {
    if (!differentiable(ys[i].dtype())) {
      throw InvalidArgumentError(
          fmt::format("gradients: {} is {}, not a floating-point tensor", ys[i].name(), dtype_name(ys[i].dtype())));
    }
    if (i >= grad_ys.size() || !grad_ys[i].valid()) continue;
    if (grad_ys[i].dtype() != ys[i].dtype() || !grad_ys[i].shape().compatible_with(ys[i].shape())) {
      throw InvalidArgumentError(fmt::format("gradients: {} is {}{}, but its gradient {} is {}{}", ys[i].name(),
                                             dtype_name(ys[i].dtype()), ys[i].shape().to_string(), grad_ys[i].name(),
                                             dtype_name(grad_ys[i].dtype()), grad_ys[i].shape().to_string()));
    }
  }
  if (grad_ys.size() > ys.size()) throw InvalidArgumentError("gradients: more grad_ys than ys");
}

// A variable's own read stands for the variable.
Output source_of(const Output& x) {
  const Operation op = x.op();
  const bool read = op.type() == "Identity" && op.inputs()[0].op().type() == "VariableV2";
  return read ? op.inputs()[0] : x;
}

}  // namespace

std::vector<Output> gradients(const Scope& scope, const std::vector<Output>& ys, const std::vector<Output>& xs,
                              const std::vector<Output>& grad_ys) {
  check(ys, grad_ys);
  std::vector<Output> sources;
  for (const Output& x : xs) sources.push_back(source_of(x));
  Walk walk(scope.sub("gradients"), ys, sources);
  walk.start(grad_ys);
  walk.run();
  std::vector<Output> found;
  for (const Output& source : sources) found.push_back(walk.gradient_of(source));
  return found;
}

Output stop_gradient(const Scope& scope, const Output& value, std::string_view name) {
  return aten(scope, "aten::detach", name, {{"self", value}}).output();
}

}  // namespace longhaul::ops
