#pragma once

#include <map>
#include <unordered_map>

#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/session/step_trace.h"
#include "longhaul/testing/scripted_session.h"

namespace longhaul::testing {

// One run of a ScriptedSession: each operation is evaluated once, when first needed. Variables are read as of the
// beginning of the run, except by operations with control inputs. Several runs may be under way at once.
class Interpreter {
 public:
  using Values = std::map<std::string, Tensor>;

  // Records the evaluated operations in `trace`.
  Interpreter(const std::map<std::string, ScriptedSession::Handler>& handlers, ScriptedSession::Variables& variables,
              const WaitLimits& limits, StepTrace& trace);

  void feed(const Output& output, const Tensor& value) { fed_[output] = value; }
  Tensor fetch(const Fetch::Target& target);

 private:
  const std::vector<Tensor>& results_of(const Operation& op);
  std::vector<Tensor> evaluate(const Operation& op);
  std::vector<Tensor> run_on_host(const Operation& op, HostKernel kernel, std::vector<Tensor> inputs);
  Tensor value_of(const Output& output, bool at_start);
  std::vector<Tensor> inputs_of(const Operation& op);
  void note(const Operation& op, const std::vector<Tensor>& results);

  const std::map<std::string, ScriptedSession::Handler>& handlers_;
  ScriptedSession::Variables& variables_;
  const WaitLimits limits_;
  StepTrace& trace_;
  Values at_start_;
  std::unordered_map<Output, Tensor, OutputHash> fed_;
  std::unordered_map<Operation, std::vector<Tensor>, OperationHash> results_;
};

}  // namespace longhaul::testing
