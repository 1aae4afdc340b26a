#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "longhaul/host/parsing/example.h"

namespace longhaul {

// The values of one feature in the examples of a batch, collected one example at a time.
class FeatureColumn {
 public:
  // InvalidArgumentError: an invalid dtype, shape or default.
  explicit FeatureColumn(const ExampleSpec::Sparse& wanted);
  explicit FeatureColumn(const ExampleSpec::Dense& wanted);

  const std::string& key() const { return key_; }

  // Adds the next example's: a serialized Feature, or no bytes if it is missing. InvalidArgumentError: it does not
  // match the spec; the message says why, without key and example.
  void add(std::string_view feature);

  // The values added. `single`: of a single example, without a batch dimension.
  SparseTensor take_sparse(bool single);
  Tensor take_dense(bool single);

 private:
  using Floats = std::vector<float>;
  using Integers = std::vector<int64_t>;
  using Strings = std::vector<std::string>;

  FeatureColumn(std::string key, DType dtype);
  size_t size() const;
  void truncate(size_t size);
  void check_kind(uint32_t kind) const;
  void add_list(std::string_view list);
  void add_default();
  void check_count(size_t count) const;
  Tensor values(const Shape& shape);
  Tensor padded(const Shape& shape, size_t longest);
  bool is_sequence() const { return !sparse_ && shape_.rank() > 0 && shape_.dim(0) < 0; }

  const std::string key_;
  const DType dtype_;
  bool sparse_ = false;
  Shape shape_;
  size_t elements_ = 1;  // of the shape; for a sequence: of one of its elements
  Tensor default_;
  std::variant<Floats, Integers, Strings> values_;
  std::vector<size_t> counts_;  // for each example
};

}  // namespace longhaul
