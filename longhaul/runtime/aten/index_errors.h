#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace longhaul {

// What is wrong with the indices of a lookup (aten::embedding, aten::index_select) that libtorch has refused with these
// arguments: "index 5 at position 1; the table has 5 rows". Empty: nothing that is seen here.
std::string index_error_text(const std::string& type, const std::vector<c10::IValue>& arguments);

}  // namespace longhaul
