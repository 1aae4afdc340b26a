#include "longhaul/host/parsing/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/host/list_fixture.h"
#include "longhaul/proto/example.pb.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/proto/tensor.pb.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ExampleBuilder {
  proto::Example message;
  ExampleBuilder& floats(const std::string& key, std::vector<float> values) {
    auto* list = (*message.mutable_features()->mutable_feature())[key].mutable_float_list();
    for (float value : values) list->add_value(value);
    return *this;
  }
  ExampleBuilder& ints(const std::string& key, std::vector<int64_t> values) {
    auto* list = (*message.mutable_features()->mutable_feature())[key].mutable_int64_list();
    for (int64_t value : values) list->add_value(value);
    return *this;
  }
  ExampleBuilder& strings(const std::string& key, std::vector<std::string> values) {
    auto* list = (*message.mutable_features()->mutable_feature())[key].mutable_bytes_list();
    for (const std::string& value : values) list->add_value(value);
    return *this;
  }
  operator std::string() const { return proto::serialize(message); }
};

ParsedExamples parse(const std::vector<std::string>& examples, const ExampleSpec& spec) {
  return parse_examples(Tensor::of(examples), Tensor(), spec);
}

TEST(Example, DenseFeaturesBecomeTensorsOfTheirShapes) {
  const auto parsed = parse({ExampleBuilder().floats("f", {1, 2}).ints("i", {-3}).strings("s", {"a"}),
                             ExampleBuilder().floats("f", {4, 5}).ints("i", {1ll << 40}).strings("s", {""})},
                            {.dense = {{"f", kFloat, {2}, {}}, {"i", kInt64, {}, {}}, {"s", kString, {1, 1}, {}}}});
  EXPECT_EQ(parsed.dense[0].shape(), (Shape{2, 2}));
  EXPECT_THAT(list<float>(parsed.dense[0]), ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(parsed.dense[1].shape(), (Shape{2}));
  EXPECT_THAT(list<int64_t>(parsed.dense[1]), ElementsAre(-3, 1ll << 40));
  EXPECT_EQ(parsed.dense[2].shape(), (Shape{2, 1, 1}));
  EXPECT_THAT(list<std::string>(parsed.dense[2]), ElementsAre("a", ""));
}

TEST(Example, SparseFeaturesKeepWhereTheirValuesWere) {
  const auto parsed = parse({ExampleBuilder().ints("i", {1, 2, 3}), ExampleBuilder(), ExampleBuilder().ints("i", {4})},
                            {.sparse = {{"i", kInt64}, {"none", kString}}});
  EXPECT_THAT(list<int64_t>(parsed.sparse[0].values), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(parsed.sparse[0].indices.shape(), (Shape{4, 2}));
  EXPECT_THAT(list<int64_t>(parsed.sparse[0].indices), ElementsAre(0, 0, 0, 1, 0, 2, 2, 0));
  EXPECT_THAT(list<int64_t>(parsed.sparse[0].dense_shape), ElementsAre(3, 3));
  EXPECT_THAT(list<std::string>(parsed.sparse[1].values), IsEmpty());
  EXPECT_THAT(list<int64_t>(parsed.sparse[1].dense_shape), ElementsAre(3, 0));
}

TEST(Example, SequencesAreFilledUpBehind) {
  const auto parsed =
      parse({ExampleBuilder().floats("f", {1, 2, 3, 4}), ExampleBuilder().floats("f", {5, 6}), ExampleBuilder()},
            {.dense = {{"f", kFloat, {-1, 2}, Tensor::scalar(-1.0f)}, {"s", kString, {-1}, {}}}});
  EXPECT_EQ(parsed.dense[0].shape(), (Shape{3, 2, 2}));
  EXPECT_THAT(list<float>(parsed.dense[0]), ElementsAre(1, 2, 3, 4, 5, 6, -1, -1, -1, -1, -1, -1));
  EXPECT_EQ(parsed.dense[1].shape(), (Shape{3, 0}));
}

TEST(Example, MissingFeaturesHaveTheirDefaults) {
  ExampleBuilder no_kind;
  (*no_kind.message.mutable_features()->mutable_feature())["s"];
  const auto parsed = parse({no_kind}, {.dense = {{"f", kFloat, {2}, Tensor::of<float>({1, 2})},
                                                  {"i", kInt64, {3}, Tensor::scalar<int64_t>(7)},
                                                  {"s", kString, {}, Tensor::scalar("d")}}});
  EXPECT_THAT(list<float>(parsed.dense[0]), ElementsAre(1, 2));
  EXPECT_THAT(list<int64_t>(parsed.dense[1]), ElementsAre(7, 7, 7));
  EXPECT_THAT(list<std::string>(parsed.dense[2]), ElementsAre("d"));
}

TEST(Example, ASingleOneHasNoBatchDimension) {
  const auto parsed = parse_single_example(ExampleBuilder().floats("f", {1, 2}).ints("i", {3, 4, 5}),
                                           {.sparse = {{"i", kInt64}}, .dense = {{"f", kFloat, {2}, {}}}});
  EXPECT_EQ(parsed.dense[0].shape(), (Shape{2}));
  EXPECT_THAT(list<int64_t>(parsed.sparse[0].indices), ElementsAre(0, 1, 2));
  EXPECT_EQ(parsed.sparse[0].indices.shape(), (Shape{3, 1}));
  EXPECT_THAT(list<int64_t>(parsed.sparse[0].dense_shape), ElementsAre(3));
  const auto sequence = parse_single_example(ExampleBuilder().ints("i", {3, 4}), {.dense = {{"i", kInt64, {-1}, {}}}});
  EXPECT_EQ(sequence.dense[0].shape(), (Shape{2}));
}

TEST(Example, ErrorsNameTheExampleAndTheKey) {
  const ExampleSpec spec{.dense = {{"f", kFloat, {2}, {}}}};
  const std::string good = ExampleBuilder().floats("f", {1, 2});
  const auto error = [&](const std::string& second) { return refusal_of([&] { parse({good, second}, spec); }); };
  EXPECT_EQ(error(ExampleBuilder()), "example 1: feature f: it is required (float) but could not be found");
  EXPECT_EQ(error(ExampleBuilder().ints("f", {1, 2})), "example 1: feature f: its data type is int64, want float");
  EXPECT_EQ(error(ExampleBuilder().floats("f", {1})),
            "example 1: feature f: it has 1 values, want 2 for its shape [2]");
  EXPECT_EQ(error("\x0a\x05"), "example 1: could not parse the serialized Example");
  const Tensor names = Tensor::of<std::string>({"first"});
  EXPECT_THAT(refusal_of([&] { parse_examples(Tensor::of<std::string>({""}), names, spec); }),
              HasSubstr("example first: feature f: "));
  EXPECT_THAT(refusal_of([&] { parse_single_example("", spec); }), HasSubstr("the example: feature f: "));
  EXPECT_THAT(
      refusal_of([&] { parse({ExampleBuilder().floats("f", {1, 2, 3})}, {.dense = {{"f", kFloat, {-1, 2}, {}}}}); }),
      HasSubstr("3 values, which is not a multiple of 2"));
}

TEST(Example, ASpecThatCannotBeMetIsRefused) {
  EXPECT_THAT(refusal_of([] { parse({}, {.sparse = {{"a", kInt32}}}); }),
              HasSubstr("feature a cannot have type int32"));
  EXPECT_THAT(refusal_of([] { parse({}, {.sparse = {{"a", kFloat}, {"a", kFloat}}}); }), HasSubstr("listed twice"));
  EXPECT_THAT(refusal_of([] { parse({}, {.dense = {{"a", kFloat, {2, -1}, {}}}}); }),
              HasSubstr("cannot have shape [2,?]"));
  EXPECT_THAT(refusal_of([] { parse({}, {.dense = {{"a", kFloat, {3}, Tensor::of<float>({1, 2})}}}); }),
              HasSubstr("has 2 values"));
  EXPECT_THAT(refusal_of([] { parse({}, {.dense = {{"a", kFloat, {}, Tensor::scalar("x")}}}); }),
              HasSubstr("the default of feature a is string"));
}

// Written by hand after the encoding's rules: numbers one by one, fields twice, fields that are not known.
TEST(Example, OtherEncodingsOfTheSameMessageAreRead) {
  const std::string unpacked("\x1a\x04\x08\x05\x08\x06", 6);  // int64_list { value: 5 value: 6 }, not packed
  const std::string floats("\x12\x05\x0d\0\0\x80\x3f", 7);    // float_list { value: 1 }, not packed
  const auto entry = [](const std::string& key, const std::string& feature) {
    std::string text = "\x0a" + std::string(1, static_cast<char>(key.size())) + key + "\x12" +
                       std::string(1, static_cast<char>(feature.size())) + feature;
    return "\x0a" + std::string(1, static_cast<char>(text.size())) + text;
  };
  const auto features = [](const std::string& entries) {
    return "\x0a" + std::string(1, static_cast<char>(entries.size())) + entries;
  };
  const std::string unknown("\x78\x01\x7a\x01z\x7d\0\0\0\0\x79\0\0\0\0\0\0\0\0", 19);
  const std::string bytes = unknown + features(entry("i", "\x1a\x02\x08\x09")) +
                            features(unknown + entry("f", floats)) + features(entry("i", unpacked + unpacked));
  const auto parsed = parse({bytes}, {.sparse = {{"i", kInt64}}, .dense = {{"f", kFloat, {}, {}}}});
  EXPECT_THAT(list<int64_t>(parsed.sparse[0].values), ElementsAre(5, 6, 5, 6));
  EXPECT_THAT(list<float>(parsed.dense[0]), ElementsAre(1));
}

TEST(Example, TheLastKindOfAFeatureCounts) {
  const std::string feature("\x1a\x02\x08\x05\x12\x05\x0d\0\0\x80\x3f", 11);
  const std::string entry = std::string("\x0a\x01x\x12") + static_cast<char>(feature.size()) + feature;
  const std::string features = std::string("\x0a") + static_cast<char>(entry.size()) + entry;
  const std::string bytes = std::string("\x0a") + static_cast<char>(features.size()) + features;
  EXPECT_THAT(list<float>(parse({bytes}, {.sparse = {{"x", kFloat}}}).sparse[0].values), ElementsAre(1));
  EXPECT_THAT(refusal_of([&] { parse({bytes}, {.sparse = {{"x", kInt64}}}); }), HasSubstr("its data type is float"));
}

TEST(Example, EveryPrefixAndEveryFlippedBitIsReadOrRefused) {
  const std::string whole = ExampleBuilder().floats("f", {1, 2}).ints("i", {1, 300}).strings("s", {"a", "bc"});
  const ExampleSpec spec{.sparse = {{"i", kInt64}, {"s", kString}}, .dense = {{"f", kFloat, {-1}, {}}}};
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string error = refusal_of([&] { parse({whole.substr(0, size)}, spec); });
    EXPECT_EQ(error == "", size == 0) << size << " " << error;
  }
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    refusal_of([&] {
      const auto parsed = parse({damaged}, spec);
      check_sparse(parsed.sparse[0]);
      check_sparse(parsed.sparse[1]);
      EXPECT_LE(parsed.dense[0].num_elements(), static_cast<int64_t>(whole.size()));
    });
  }
}

TEST(Example, AnAbsurdLengthTakesNoMemory) {
  const std::string absurd("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10);
  EXPECT_THAT(refusal_of([&] { parse({absurd}, {}); }), HasSubstr("could not parse the serialized Example"));
}

SparseTensor matrix() {
  return {Tensor::of<int64_t>(Shape{3, 2}, {0, 1, 0, 2, 2, 0}), Tensor::of<std::string>({"a", "b", "c"}),
          Tensor::of<int64_t>({3, 4})};
}

TEST(SparseTensor, ItsRowsGoThroughStringsAndComeBack) {
  const SparseTensor before = matrix(), after = deserialize_many_sparse(serialize_many_sparse(before), kString);
  EXPECT_TRUE(identical(after.indices, before.indices));
  EXPECT_TRUE(identical(after.values, before.values));
  EXPECT_TRUE(identical(after.dense_shape, before.dense_shape));
}

TEST(SparseTensor, SeveralAreJoinedToTheLargest) {  // IN-8
  const SparseTensor one{Tensor::of<int64_t>(Shape{1, 1}, {4}), Tensor::of<float>({1}), Tensor::of<int64_t>({5})};
  const SparseTensor two{Tensor::of<int64_t>(Shape{1, 1}, {0}), Tensor::of<float>({2}), Tensor::of<int64_t>({1})};
  std::vector<std::string> rows = list<std::string>(serialize_sparse(one));
  for (const std::string& text : list<std::string>(serialize_sparse(two))) rows.push_back(text);
  const SparseTensor joined = deserialize_many_sparse(Tensor::of(Shape{2, 3}, rows), kFloat);
  EXPECT_THAT(list<int64_t>(joined.indices), ElementsAre(0, 4, 1, 0));
  EXPECT_THAT(list<float>(joined.values), ElementsAre(1, 2));
  EXPECT_THAT(list<int64_t>(joined.dense_shape), ElementsAre(2, 5));
}

TEST(SparseTensor, NoShapeIsBelievedBeyondTheBytesOfItsTensor) {
  proto::TensorProto large;
  large.set_dtype(proto::DT_STRING);
  large.mutable_tensor_shape()->add_dim()->set_size(1 << 24);
  large.add_string_val("x");
  const std::vector<std::string> row(3, proto::serialize(large));
  EXPECT_THAT(refusal_of([&] { deserialize_many_sparse(Tensor::of(Shape{1, 3}, row), kString); }),
              HasSubstr("claims the shape [16777216]"));
}

TEST(SparseTensor, WhatDoesNotFitTogetherIsRefused) {
  SparseTensor outside = matrix(), short_of_values = matrix(), unsorted = matrix(), absurd = matrix();
  outside.dense_shape = Tensor::of<int64_t>({3, 2});
  short_of_values.values = Tensor::of<std::string>({"a"});
  unsorted.indices = Tensor::of<int64_t>(Shape{3, 2}, {2, 0, 0, 1, 0, 2});
  absurd.dense_shape = Tensor::of<int64_t>({int64_t{1} << 60, 4});
  EXPECT_THAT(refusal_of([&] { serialize_sparse(outside); }), HasSubstr("has index 2 in a dimension of size 2"));
  EXPECT_THAT(refusal_of([&] { serialize_sparse(short_of_values); }), HasSubstr("not a sparse tensor"));
  EXPECT_THAT(refusal_of([&] { serialize_many_sparse(unsorted); }), HasSubstr("must be sorted"));
  EXPECT_THAT(refusal_of([&] { serialize_many_sparse(absurd); }), HasSubstr("rows"));
  EXPECT_THAT(refusal_of([&] { deserialize_many_sparse(serialize_many_sparse(matrix()), kFloat); }),
              HasSubstr("want float"));
  EXPECT_THAT(refusal_of([&] {
                deserialize_many_sparse(Tensor::of(Shape{1, 3}, std::vector<std::string>{"x", "y", "z"}), kFloat);
              }),
              HasSubstr("not a serialized tensor"));
}

}  // namespace
}  // namespace longhaul
