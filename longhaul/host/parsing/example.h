#pragma once

#include <string>
#include <vector>

#include "longhaul/host/parsing/sparse_tensor.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The features to extract from tf.Example messages. All dtypes are float, int64 or string.
struct ExampleSpec {
  struct Sparse {
    std::string key;
    DType dtype;
  };
  // A feature of that shape in each example. The first size may be -1: any number of elements of the remaining shape,
  // padded at the end to the batch's largest with the default, a single value (or none: 0, ""). Otherwise a missing
  // feature gets the default, one value for all elements or one for each; without a default, it is an error.
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
// empty. InvalidArgumentError, with the example and the key: bytes that are not such a message; a feature that is
// missing, or has the wrong kind or number of values. Memory is allocated for actual contents, never for what a length
// claims.
ParsedExamples parse_examples(const Tensor& serialized, const Tensor& names, const ExampleSpec& spec);

// The same for one message; the results have no batch dimension.
ParsedExamples parse_single_example(const std::string& serialized, const ExampleSpec& spec);

}  // namespace longhaul
