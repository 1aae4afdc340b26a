#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "longhaul/graph/op_catalog.h"

namespace longhaul {

// How an operation of type "aten::NAME.OVERLOAD" fills the arguments of its schema. The attr "edges" names the argument
// that each input is for (a name is repeated for each element of a Tensor[]); an argument not named there comes from
// the attr with its name, or else has the schema's default. Without "edges" the Tensor arguments take one input each,
// in order.
struct AtenArgument {
  enum class Source {
    kConstant,    // `constant`
    kTensor,      // one input
    kTensorList,  // `count` inputs
    kOptionalTensorList,
    kInts,       // int[]: the elements of one input, a 1-D int64 tensor
    kInt,        // int: the element of one input
    kScalar,     // Scalar, float or bool: the element of one input
    kGenerator,  // the operation's own random numbers
  };
  Source source = Source::kConstant;
  c10::IValue constant;
  int first_input = 0;
  int count = 0;
};

struct AtenCall {
  c10::OperatorHandle op;
  std::vector<AtenArgument> arguments;
  bool random = false;
};

// nullopt: not an ATen type, or libtorch has no such operator. InvalidArgumentError: the operator cannot be called with
// these attrs and this number of inputs; the message has the schema.
std::optional<AtenCall> bind_aten_call(const OperationSpec& spec);

// Whether this libtorch has such an operator, and for that kind of device.
bool has_aten_kernel(const std::string& type, c10::Device device);

// Lets an operator that makes tensors from none, such as aten::zeros, make them there.
void set_device(AtenCall& call, c10::Device device);

// Of each of `count` inputs, whether the call needs its elements on the host: as an int, or as a scalar.
std::vector<bool> inputs_on_host(const AtenCall& call, size_t count);

// The value of an int[] argument with `output` as its source, as far as it is known when the graph is built; unknown
// sizes are -1.
std::optional<std::vector<int64_t>> static_ints(const Output& output);

// A c10::Error without the stack trace, as "NAME (TYPE): text".
std::string aten_error_text(const std::string& name, const std::string& type, const c10::Error& error);

}  // namespace longhaul
