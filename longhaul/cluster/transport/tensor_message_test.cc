#include "longhaul/cluster/transport/tensor_message.h"

#include <gtest/gtest.h>

#include <cstring>

#include "longhaul/proto/cluster_service.pb.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

constexpr uint32_t kTensorField = proto::TaskFrame::kTensorsFieldNumber;

Slices written(const Tensor& tensor) {
  SliceWriter out;
  write_tensor(out, kTensorField, tensor);
  return out.take();
}

// As protobuf reads it.
proto::TensorProto parsed_tensor(const Tensor& tensor) {
  proto::TaskFrame frame;
  EXPECT_TRUE(frame.ParseFromString(joined(written(tensor))));
  EXPECT_EQ(frame.tensors_size(), 1);
  return frame.tensors(0);
}

Tensor read_back(const std::string& bytes) {
  const Slices slices = {{bytes, nullptr}};
  SliceReader in(slices);
  return read_tensor(in, in.left(), "it");
}

// The same in pieces of `size` bytes.
Tensor read_in_pieces(const std::string& bytes, size_t size) {
  Slices slices;
  for (size_t at = 0; at < bytes.size(); at += size) slices.push_back({std::string_view(bytes).substr(at, size), {}});
  SliceReader in(slices);
  return read_tensor(in, in.left(), "it");
}

Tensor numbers_of(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  auto* const bytes = static_cast<unsigned char*>(tensor.mutable_data());
  for (size_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<unsigned char>(dtype == kBool ? i % 2 : i);
  return tensor;
}

const std::vector<DType>& number_dtypes() {
  static const std::vector<DType> all = {kFloat, kDouble,   kInt32,  kUInt8,      kInt16, kInt8,   kComplex64, kInt64,
                                         kBool,  kBFloat16, kUInt16, kComplex128, kHalf,  kUInt32, kUInt64};
  return all;
}

TEST(TensorMessage, ProtobufReadsWhatIsWrittenByHand) {
  for (const DType dtype : number_dtypes()) {
    for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{0, 4}, Shape{40, 50}}) {
      const Tensor tensor = numbers_of(dtype, shape);
      const proto::TensorProto proto = parsed_tensor(tensor);
      EXPECT_EQ(static_cast<int>(proto.dtype()), static_cast<int>(dtype));
      ASSERT_EQ(proto.tensor_shape().dim_size(), shape.rank());
      for (int i = 0; i < shape.rank(); ++i) EXPECT_EQ(proto.tensor_shape().dim(i).size(), shape.dim(i));
      EXPECT_EQ(proto.tensor_content(), std::string(static_cast<const char*>(tensor.data()), tensor.size_bytes()));
      // The same bytes as protobuf's own.
      proto::TaskFrame frame;
      *frame.add_tensors() = proto;
      EXPECT_EQ(frame.SerializeAsString(), joined(written(tensor)));
    }
  }
}

TEST(TensorMessage, NumbersComeBack) {
  for (const DType dtype : number_dtypes()) {
    for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{0, 4}, Shape{40, 50}}) {
      const Tensor tensor = numbers_of(dtype, shape);
      const std::string bytes = parsed_tensor(tensor).SerializeAsString();
      EXPECT_TRUE(identical(read_back(bytes), tensor)) << dtype_name(dtype) << shape.to_string();
      EXPECT_TRUE(identical(read_in_pieces(bytes, 1), tensor));
      EXPECT_TRUE(identical(read_in_pieces(bytes, 7), tensor));
    }
  }
}

TEST(TensorMessage, StringsComeBack) {
  const Tensor tensor =
      Tensor::of<std::string>(Shape{2, 2}, {"", "peach", std::string(5000, 'x'), std::string("\0\1", 2)});
  const std::string bytes = parsed_tensor(tensor).SerializeAsString();
  EXPECT_TRUE(identical(read_back(bytes), tensor));
  EXPECT_TRUE(identical(read_in_pieces(bytes, 3), tensor));
}

TEST(TensorMessage, LargeNumbersAreSentWithoutACopy) {  // RZ-6
  const Tensor tensor = numbers_of(kFloat, {1000});
  bool is_shared = false;
  for (const Slice& slice : written(tensor)) {
    if (slice.bytes.data() != tensor.data()) continue;
    is_shared = slice.bytes.size() == tensor.size_bytes() && slice.owner == tensor.owner();
  }
  EXPECT_TRUE(is_shared);
}

TEST(TensorMessage, LargeStringsAreSentWithoutACopy) {
  const Tensor tensor = Tensor::of<std::string>({std::string(5000, 'x')});
  size_t shared = 0;
  for (const Slice& slice : written(tensor)) shared += slice.bytes.data() == tensor.flat<std::string>()[0].data();
  EXPECT_EQ(shared, 1u);
}

TEST(TensorMessage, ASliceKeepsTheBytesOfADestroyedTensor) {
  Slices slices;
  {
    slices = written(numbers_of(kUInt8, {5000}));
  }
  proto::TaskFrame frame;
  ASSERT_TRUE(frame.ParseFromString(joined(slices)));
  EXPECT_TRUE(identical(read_back(frame.tensors(0).SerializeAsString()), numbers_of(kUInt8, {5000})));
}

TEST(TensorMessage, EveryPrefixIsRefused) {
  for (const Tensor& tensor : {numbers_of(kInt32, {2, 3}), Tensor::of<std::string>({"a", "peach", ""})}) {
    const std::string bytes = parsed_tensor(tensor).SerializeAsString();
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_THROW(read_back(bytes.substr(0, size)), InvalidArgumentError) << size;
    }
  }
}

TEST(TensorMessage, SizesAreNotBelieved) {
  proto::TensorProto huge;
  huge.set_dtype(proto::DT_FLOAT);
  huge.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 50);
  EXPECT_NE(refusal_of([&] { read_back(huge.SerializeAsString()); }).find("more than its bytes can hold"),
            std::string::npos);
  huge.set_tensor_content("1234");
  EXPECT_NE(refusal_of([&] { read_back(huge.SerializeAsString()); }).find("has 4 bytes"), std::string::npos);
  proto::TensorProto texts;
  texts.set_dtype(proto::DT_STRING);
  texts.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 40);
  texts.add_string_val("one");
  EXPECT_NE(refusal_of([&] { read_back(texts.SerializeAsString()); }).find("more than its bytes can hold"),
            std::string::npos);
}

TEST(TensorMessage, WhatIsNoTensorIsRefusedByItsReason) {
  proto::TensorProto bad;
  EXPECT_NE(
      refusal_of([&] { read_back(bad.SerializeAsString()); }).find("it: the tensor cannot be read: it has no dtype"),
      std::string::npos);
  bad.set_dtype(static_cast<proto::DataType>(20));
  EXPECT_NE(refusal_of([&] { read_back(bad.SerializeAsString()); }).find("dtype 20 is not supported"),
            std::string::npos);
  bad.set_dtype(proto::DT_FLOAT);
  bad.add_float_val(1);
  EXPECT_NE(refusal_of([&] { read_back(bad.SerializeAsString()); }).find("field 5 is none of"), std::string::npos);
  bad.clear_float_val();
  bad.mutable_tensor_shape()->add_dim()->set_size(-1);
  EXPECT_NE(refusal_of([&] { read_back(bad.SerializeAsString()); }).find("negative"), std::string::npos);
  bad.mutable_tensor_shape()->set_unknown_rank(true);
  EXPECT_THROW(read_back(bad.SerializeAsString()), InvalidArgumentError);
  SliceWriter out;
  EXPECT_THROW(write_tensor(out, kTensorField, Tensor()), InvalidArgumentError);
}

TEST(TensorMessage, MoreStringsThanTheShapeSaysAreRefused) {
  proto::TensorProto texts;
  texts.set_dtype(proto::DT_STRING);
  texts.mutable_tensor_shape()->add_dim()->set_size(1);
  texts.add_string_val("one");
  texts.add_string_val("two");
  EXPECT_NE(refusal_of([&] { read_back(texts.SerializeAsString()); }).find("more strings"), std::string::npos);
}

}  // namespace
}  // namespace longhaul
