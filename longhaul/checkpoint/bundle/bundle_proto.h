#pragma once

#include <string>

#include "longhaul/checkpoint/bundle/slice.h"
#include "longhaul/proto/tensor_bundle.pb.h"
#include "longhaul/tensor/dtype.h"
#include "longhaul/tensor/shape.h"

namespace longhaul {

void set_shape(proto::TensorShapeProto& out, const Shape& shape);
void set_slice(proto::TensorSliceProto& out, const TensorSlice& slice);
proto::BundleEntryProto entry_of(DType dtype, const Shape& shape);  // without a place

// The shape in the message, unchecked: it may have negative sizes or an unknown rank.
Shape shape_from(const proto::TensorShapeProto& message);
TensorSlice slice_from(const proto::TensorSliceProto& message);

// TensorFlow's name of a dtype, for messages: "DT_QINT16"; for a number that it does not have, "dtype 1234".
std::string stored_dtype_name(int number);

}  // namespace longhaul
