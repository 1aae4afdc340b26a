#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

namespace longhaul {

// What takes elements of a tensor by their index in one of its dimensions.
struct Lookup {
  at::Tensor table, indices;
  int64_t dim = 0;
  std::optional<int64_t> ignored = {};  // an index that stands for no element
  bool is_of_classes = false;           // the indices are labels
};

// "index 5 at position 1 is out of range: the table has 5 rows". Empty: all indices, which are on the host, are right.
std::string index_error_text(const Lookup& lookup);

// The same of a lookup (aten::embedding, aten::index_select) that libtorch refused with these arguments; empty also if
// it is no lookup, or its indices are on a device.
std::string index_error_text(const std::string& type, const std::vector<c10::IValue>& arguments);

}  // namespace longhaul
