#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace longhaul {

// The error in the indices of a lookup (aten::embedding, aten::index_select) that libtorch refused with these
// arguments: "index 5 at position 1 is out of range: the table has 5 rows". Empty: none found.
std::string index_error_text(const std::string& type, const std::vector<c10::IValue>& arguments);

}  // namespace longhaul
