#pragma once

#include <string>
#include <vector>

#include "longhaul/host/parsing/sparse_tensor.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What is wanted of tf.Example messages. All dtypes are float, int64 or string.
struct ExampleSpec {
  struct Sparse {
    std::string key;
    DType dtype;
  };
  // Of that shape in each example. Its first size may be -1: any number of elements of the rest, filled up behind to
  // the batch's largest with the default, one value (or none: 0, ""). Else a missing feature has the default, one value
  // for all elements or one for each; it is an error where there is none.
  struct Dense {
    std::string key;
    DType dtype;
    Shape shape;
    Tensor default_value;  // empty, or undefined: none
  };
  std::vector<Sparse> sparse;
  std::vector<Dense> dense;
};

// In the order of the spec.
struct ParsedExamples {
  std::vector<SparseTensor> sparse;
  std::vector<Tensor> dense;
};

// A batch of serialized messages (a string vector). `names`: a string for each of them, for messages; or undefined, or
// empty. InvalidArgumentError, with the example and the key: bytes that are no such message; a feature that is missing,
// of another kind or number of values than wanted. Memory is taken for what is there, never for what a length claims.
ParsedExamples parse_examples(const Tensor& serialized, const Tensor& names, const ExampleSpec& spec);

// One of them; the results have no batch dimension.
ParsedExamples parse_single_example(const std::string& serialized, const ExampleSpec& spec);

}  // namespace longhaul
