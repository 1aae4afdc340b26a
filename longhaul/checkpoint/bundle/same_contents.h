#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "longhaul/checkpoint/bundle/string_tensor.h"
#include "longhaul/io/files/file.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A tensor, or a part of one, that a checkpoint should have.
struct ExpectedTensor {
  std::string name{};
  std::string slice{};  // empty, or the full shape and the part: "5 10 0,5:2,1"
  Tensor value{};
  // Of its bytes as a data file has them, where these are elsewhere: then only the value's dtype and shape count.
  std::optional<StoredBytes> checksum{};
};
ExpectedTensor expected_elsewhere(std::string name, std::string slice, DType dtype, const Shape& shape,
                                  const StoredBytes& checksum);

// The size and the checksum that an index would have for the tensor.
StoredBytes checksum_of(const Tensor& tensor);

// Whether saving these tensors would change nothing: the committed checkpoint of that name has exactly these tensors,
// with these dtypes and shapes, in these slices, byte for byte. Checks the cheapest things first: names, then the
// checksums in the index. Then reads the data files, in pieces, until the first difference. Returns false for a
// missing, damaged or unreadable checkpoint. Does not throw. No tensor may be elsewhere.
bool has_exactly(FileSystem& files, const std::string& prefix, std::span<const ExpectedTensor> tensors);

// The same, but ignores the values of the tensors for whose names `may_differ` is true, and compares only the checksums
// in the index. Does not throw.
bool has_but_for(FileSystem& files, const std::string& prefix, std::span<const ExpectedTensor> tensors,
                 const std::function<bool(const std::string& name)>& may_differ);

}  // namespace longhaul
