#include "longhaul/checkpoint/bundle/bundle_proto.h"

#include <fmt/format.h>

namespace longhaul {

void set_shape(proto::TensorShapeProto& out, const Shape& shape) {
  for (const int64_t dim : shape.dims()) out.add_dim()->set_size(dim);
}

void set_slice(proto::TensorSliceProto& out, const TensorSlice& slice) {
  for (const auto& extent : slice.extents) {
    auto* added = out.add_extent();
    if (extent.length == TensorSlice::kFull) continue;
    added->set_start(extent.start);
    added->set_length(extent.length);
  }
}

proto::BundleEntryProto entry_of(DType dtype, const Shape& shape) {
  proto::BundleEntryProto entry;
  entry.set_dtype(static_cast<proto::DataType>(dtype));
  set_shape(*entry.mutable_shape(), shape);
  return entry;
}

Shape shape_from(const proto::TensorShapeProto& message) {
  if (message.unknown_rank()) return Shape::unknown_rank();
  std::vector<int64_t> dims;
  for (const auto& dim : message.dim()) dims.push_back(dim.size());
  return Shape(std::move(dims));
}

TensorSlice slice_from(const proto::TensorSliceProto& message) {
  TensorSlice slice;
  for (const auto& extent : message.extent()) {
    const bool whole = extent.has_length_case() == proto::TensorSliceProto::Extent::HAS_LENGTH_NOT_SET;
    slice.extents.push_back({extent.start(), whole ? TensorSlice::kFull : extent.length()});
  }
  return slice;
}

std::string stored_dtype_name(int number) {
  return proto::DataType_IsValid(number) ? proto::DataType_Name(static_cast<proto::DataType>(number))
                                         : fmt::format("dtype {}", number);
}

}  // namespace longhaul
