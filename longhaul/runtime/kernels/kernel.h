#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "longhaul/graph/operation.h"
#include "longhaul/runtime/aten/value.h"
#include "longhaul/runtime/state/session_state.h"

namespace longhaul {

// One execution of a built-in operation: its inputs' values, its variables, and the places of its outputs. Inputs that
// are variables (Operation::ref_inputs) come first and have no value here.
class KernelContext {
 public:
  KernelContext(const Operation& op, const std::vector<int>& inputs, const std::vector<int>& last_uses,
                const std::vector<VariableSlot*>& variables, int first_output, std::vector<Value>& slots,
                SessionState& resources)
      : op_(op),
        inputs_(inputs),
        last_uses_(last_uses),
        variables_(variables),
        first_output_(first_output),
        slots_(slots),
        resources_(resources) {}

  const Operation& op() const { return op_; }
  const std::string& name() const { return op_.name(); }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  // Numbered as in the operation, so that the first value of an operation on one variable is input 1.
  const Value& input(int i) const { return slots_[static_cast<size_t>(inputs_[static_cast<size_t>(i)])]; }
  const at::Tensor& tensor(int i) const { return input(i).tensor; }
  // The value itself if it is not needed afterwards, else another handle to it.
  Value take_input(int i);
  const std::vector<VariableSlot*>& variables() const { return variables_; }
  VariableSlot& variable(int i) const { return *variables_[static_cast<size_t>(i)]; }
  SessionState& resources() const { return resources_; }

  // Whether the output is used.
  bool output_needed(int i) const;
  void set_output(int i, Value value) { slots_[static_cast<size_t>(first_output_ + i)] = std::move(value); }

  // Throws an InvalidArgumentError that names the operation.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const Operation& op_;
  const std::vector<int>& inputs_;
  const std::vector<int>& last_uses_;
  const std::vector<VariableSlot*>& variables_;
  const int first_output_;
  std::vector<Value>& slots_;
  SessionState& resources_;
};

// Where a kernel runs, and its outputs are.
enum class KernelPlace : uint8_t {
  kHost,         // it wants its inputs there, too
  kHostForAny,   // it takes its inputs wherever they are
  kOfVariable,   // with its first variable
  kLikeOperator  // where libtorch's operators run
};

// How a built-in type runs. A kernel that writes variables has `check`, which detects every possible error of the call;
// in a step, all checks precede the first write.
struct Kernel {
  void (*run)(KernelContext&);
  void (*check)(const KernelContext&) = nullptr;
  KernelPlace place = KernelPlace::kHost;
  int input_with_variable = -1;  // of kOfVariable: the one input that it wants there; it wants the others on the host
};

// nullptr: no such kernel.
const Kernel* find_kernel(const std::string& type);

// The tables that find_kernel combines, one for each file in kernels/.
using KernelTable = std::vector<std::pair<std::string, Kernel>>;
KernelTable state_kernels();
KernelTable optimizer_kernels();
KernelTable sparse_kernels();
KernelTable save_restore_kernels();
KernelTable function_kernels();

}  // namespace longhaul
