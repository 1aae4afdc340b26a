#pragma once

#include <span>
#include <string>

#include "longhaul/io/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// What a checkpoint is to have: a tensor, or a part of one.
struct ExpectedTensor {
  std::string name;
  std::string slice;  // empty, or the full shape and the part: "5 10 0,5:2,1"
  Tensor value;
};

// Whether a save of these tensors would change nothing: the committed checkpoint of that name has all of them and no
// other, with these dtypes and shapes, in these slices, byte for byte. What speaks against it soonest is looked at
// first: the names, the checksums in the index; then the data files are read, in pieces, until the first difference.
// A checkpoint that is not there, that is damaged, or that cannot be read has something else. Throws nothing.
bool has_exactly(FileSystem& files, const std::string& prefix, std::span<const ExpectedTensor> tensors);

}  // namespace longhaul
