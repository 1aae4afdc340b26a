#include "longhaul/testing/interpreter.h"

#include <algorithm>

namespace longhaul::testing {
namespace {

struct Call {
  const Operation& op;
  const std::vector<Tensor>& inputs;
  std::map<std::string, Tensor>& variables;
};
using Results = std::vector<Tensor>;

const std::string& variable_name(const Call& call, size_t input = 0) {
  return call.op.inputs()[input].op().name();
}

const Tensor& current(const std::string& name, const std::map<std::string, Tensor>& variables) {
  const auto it = variables.find(name);
  if (it == variables.end()) {
    throw FailedPreconditionError("Attempting to use uninitialized value " + name +
                                  "; run its initializer or restore a checkpoint first");
  }
  return it->second;
}

template <typename T>
bool add_as(const Tensor& a, const Tensor& b, int sign, Tensor* sum) {
  if (a.dtype() != kDTypeOf<T>) return false;
  *sum = Tensor(a.dtype(), a.shape());
  for (size_t i = 0; i < a.flat<T>().size(); ++i) {
    sum->mutable_flat<T>()[i] = static_cast<T>(a.flat<T>()[i] + static_cast<T>(sign) * b.flat<T>()[i]);
  }
  return true;
}

Tensor add(const Tensor& a, const Tensor& b, int sign) {
  Tensor sum;
  if (!add_as<float>(a, b, sign, &sum) && !add_as<double>(a, b, sign, &sum) && !add_as<int32_t>(a, b, sign, &sum) &&
      !add_as<int64_t>(a, b, sign, &sum)) {
    throw UnimplementedError(std::string("scripted sessions do not add ") + dtype_name(a.dtype()));
  }
  return sum;
}

Results assign(const Call& call) {
  return {call.variables[variable_name(call)] = call.inputs[1]};
}

template <int sign>
Results assign_sum(const Call& call) {
  const Tensor& before = current(variable_name(call), call.variables);
  return {call.variables[variable_name(call)] = add(before, call.inputs[1], sign)};
}

Results count_up_to(const Call& call) {
  const Tensor before = current(variable_name(call), call.variables);
  const int64_t limit = call.op.attr<int64_t>("limit");
  if (before.item<int64_t>() >= limit) throw OutOfRangeError("Reached limit of " + std::to_string(limit));
  Tensor one(before.dtype(), before.shape());
  one = before.dtype() == kInt32 ? Tensor::of<int32_t>(before.shape(), {1}) : Tensor::of<int64_t>(before.shape(), {1});
  call.variables[variable_name(call)] = add(before, one, 1);
  return {before};
}

Results report_uninitialized(const Call& call) {
  std::vector<std::string> names;
  for (size_t i = 0; i < call.op.inputs().size(); ++i) {
    if (!call.variables.contains(variable_name(call, i))) names.push_back(variable_name(call, i));
  }
  return {Tensor::of(names)};
}

const std::map<std::string, Results (*)(const Call&)>& builtin_handlers() {
  static const auto* handlers = new std::map<std::string, Results (*)(const Call&)>{
      {"Const", [](const Call& call) -> Results { return {call.op.attr<Tensor>("value")}; }},
      {"Placeholder",
       [](const Call& call) -> Results {
         throw InvalidArgumentError("You must feed a value for placeholder tensor '" + call.op.name() + "'");
       }},
      {"PlaceholderWithDefault", [](const Call& call) { return call.inputs; }},
      {"VariableV2", [](const Call& call) -> Results { return {current(call.op.name(), call.variables)}; }},
      {"Assign", assign},
      {"AssignAdd", assign_sum<1>},
      {"AssignSub", assign_sum<-1>},
      {"CountUpTo", count_up_to},
      {"IsVariableInitialized",
       [](const Call& call) -> Results { return {Tensor::scalar(call.variables.contains(variable_name(call)))}; }},
      {"InitializedValue",
       [](const Call& call) -> Results {
         const auto it = call.variables.find(variable_name(call));
         return {it == call.variables.end() ? call.inputs[1] : it->second};
       }},
      {"ReportUninitializedVariables", report_uninitialized},
      {"NoOp", [](const Call&) -> Results { return {}; }},
      {"Identity", [](const Call& call) { return call.inputs; }},
      {"Shape", [](const Call& call) -> Results { return {Tensor::of(call.inputs[0].shape().dims())}; }},
  };
  return *handlers;
}

}  // namespace

Interpreter::Interpreter(const std::map<std::string, ScriptedSession::Handler>& handlers,
                         ScriptedSession::Variables& variables, const WaitLimits& limits, StepTrace& trace)
    : handlers_(handlers), variables_(variables), limits_(limits), trace_(trace) {
  MutexLock lock(variables_.mutex);
  at_start_ = variables_.values;
}

Tensor Interpreter::fetch(const Fetch::Target& target) {
  if (!target.is_operation()) return value_of(target.output(), /*at_start=*/true);
  results_of(target.op);
  return Tensor();
}

Tensor Interpreter::value_of(const Output& output, bool at_start) {
  if (const auto it = fed_.find(output); it != fed_.end()) return it->second;
  if (output.op().type() != "VariableV2") return results_of(output.op())[static_cast<size_t>(output.index())];
  if (at_start) return current(output.op().name(), at_start_);
  MutexLock lock(variables_.mutex);
  return current(output.op().name(), variables_.values);
}

std::vector<Tensor> Interpreter::inputs_of(const Operation& op) {
  std::vector<Tensor> inputs;
  for (const Output& input : op.inputs()) {
    const bool by_reference = static_cast<int>(inputs.size()) < op.ref_inputs();
    inputs.push_back(by_reference ? Tensor() : value_of(input, op.control_inputs().empty()));
  }
  return inputs;
}

const std::vector<Tensor>& Interpreter::results_of(const Operation& op) {
  const auto it = results_.find(op);
  if (it != results_.end()) return it->second;
  std::vector<Tensor> results = evaluate(op);
  note(op, results);
  return results_[op] = std::move(results);
}

void Interpreter::note(const Operation& op, const std::vector<Tensor>& results) {
  constexpr Seconds kEach{10e-6};
  const Seconds start = kEach * static_cast<double>(trace_.operations.size());
  TracedOperation& traced = trace_.operations.emplace_back(TracedOperation{op, start, start + kEach, {}});
  for (int i = 0; i < static_cast<int>(results.size()); ++i) {
    const Tensor& result = results[static_cast<size_t>(i)];
    if (result.defined()) traced.results.push_back({i, result.dtype(), result.shape()});
  }
}

std::vector<Tensor> Interpreter::evaluate(const Operation& op) {
  for (const Operation& control : op.control_inputs()) results_of(control);
  if ((op.traits() & kIsResource) != 0) return {Tensor()};
  const std::vector<Tensor> inputs = inputs_of(op);
  if (const auto it = handlers_.find(op.type()); it != handlers_.end()) return it->second(op, inputs);
  if (const HostKernel kernel = find_host_kernel(op.type())) return run_on_host(op, kernel, inputs);
  if (op.type() == "HostFunction") return (*op.attr<std::shared_ptr<HostFunction>>("function"))(inputs);
  const auto it = builtin_handlers().find(op.type());
  if (it == builtin_handlers().end()) throw UnimplementedError(op.name() + ": no handler for " + op.type());
  MutexLock lock(variables_.mutex);
  return it->second({op, inputs, variables_.values});
}

std::vector<Tensor> Interpreter::run_on_host(const Operation& op, HostKernel kernel, std::vector<Tensor> inputs) {
  std::vector<std::shared_ptr<Resource>> resources;
  for (int i = 0; i < op.ref_inputs(); ++i) {
    resources.push_back(resource_of(op.inputs()[static_cast<size_t>(i)].op(), variables_.resources));
  }
  HostCall call{op, inputs, resources, limits_, FileSystem::real(), variables_.resources, {}};
  kernel(call);
  return std::move(call.results);
}

}  // namespace longhaul::testing
