// The headers of safetensors files, and what is refused, against text made by hand (docs/formats/safetensors.md).
#include "longhaul/checkpoint/safetensors/safetensors_header.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "longhaul/checkpoint/safetensors/safetensors_test.h"
#include "longhaul/testing/memory_file_system.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::safetensors_file;
using ::testing::StartsWith;

SafetensorsHeader read(std::string_view bytes) {
  testing::MemoryFileSystem files;
  files.put("m.safetensors", bytes);
  return read_safetensors_header("m.safetensors", files);
}

SafetensorsHeader read(std::string_view json, size_t data_bytes) {
  return read(safetensors_file(json, std::string(data_bytes, '\x01')));
}

std::string refusal(std::string_view bytes) {
  try {
    read(bytes);
  } catch (const DataLossError& error) {
    return error.what();
  }
  return "it was read";
}

std::string refusal(std::string_view json, size_t data_bytes) {
  return refusal(safetensors_file(json, std::string(data_bytes, '\x01')));
}

TEST(SafetensorsHeader, TensorsAreReadInTheOrderOfTheirBytes) {
  const SafetensorsHeader header = read(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                                        R"("a":{"shape":[2,2],"data_offsets":[0,4],"dtype":"U8"}}   )",
                                        12);
  EXPECT_THAT(header.tensors, ElementsAre(SafetensorsEntry{"a", "U8", Shape{2, 2}, 0, 4},
                                          SafetensorsEntry{"b", "F32", Shape{2}, 4, 12}));
  EXPECT_THAT(header.metadata, IsEmpty());
  EXPECT_EQ(header.data_begin, 8u + 112u);
}

TEST(SafetensorsHeader, MetadataAreTexts) {
  const SafetensorsHeader header = read(R"({"__metadata__":{"format":"pt","":"\u00e9\n"}})", 0);
  EXPECT_THAT(header.metadata, ElementsAre(Pair("", "\u00e9\n"), Pair("format", "pt")));
  EXPECT_THAT(header.tensors, IsEmpty());
}

TEST(SafetensorsHeader, AllDTypesOfTheFormatAreKnownByTheirBits) {
  const std::vector<std::pair<std::string, int>> dtypes = {
      {"BOOL", 8},        {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},
      {"F8_E5M2", 8},     {"F8_E4M3", 8},     {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16}, {"F16", 16},
      {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"BF16", 16},   {"I32", 32},    {"U32", 32}, {"F32", 32},
      {"C64", 64},        {"F64", 64},        {"I64", 64},    {"U64", 64}};
  for (const auto& [name, bits] : dtypes) {
    const auto json = [&, dtype = name](int bytes) {
      return fmt::format(R"({{"x":{{"dtype":"{}","shape":[2,4],"data_offsets":[0,{}]}}}})", dtype, bytes);
    };
    EXPECT_EQ(read(json(bits), static_cast<size_t>(bits)).tensors.size(), 1u) << name;
    EXPECT_THAT(refusal(json(bits + 1), static_cast<size_t>(bits) + 1),
                HasSubstr("\"x\" is " + name + "[2,4], but has"));
  }
}

TEST(SafetensorsHeader, ADTypeThatIsNewerThanWeIsKnownByItsPlaceAlone) {
  EXPECT_EQ(read(R"({"x":{"dtype":"F3","shape":[8],"data_offsets":[0,3]}})", 3).tensors.at(0).dtype, "F3");
  EXPECT_EQ(safetensors_dtype("F3"), std::nullopt);
  EXPECT_EQ(safetensors_dtype("F8_E4M3"), kInvalid);
  EXPECT_EQ(safetensors_dtype("BF16"), kBFloat16);
}

TEST(SafetensorsHeader, TensorsOfNoElementsAndScalarsHaveTheirPlaces) {
  const SafetensorsHeader header = read(R"({"e":{"dtype":"F32","shape":[3,0],"data_offsets":[0,0]},)"
                                        R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                                        R"("z":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
                                        4);
  EXPECT_EQ(header.tensors.size(), 3u);
}

struct Refused {
  std::string_view json;
  size_t data_bytes;
  std::string_view why;
};

void expect_refused(const std::vector<Refused>& all) {
  for (const Refused& one : all) {
    EXPECT_THAT(refusal(one.json, one.data_bytes),
                AllOf(StartsWith("m.safetensors: "), HasSubstr(std::string(one.why))))
        << one.json;
  }
}

TEST(SafetensorsHeader, WhatIsNoHeaderIsRefusedAtItsPlace) {
  expect_refused({
      {"", 0, "does not begin with \"{\""},
      {" {}", 0, "does not begin with \"{\""},
      {"[]", 0, "does not begin with \"{\""},
      {"\xef\xbb\xbf{}", 0, "does not begin with \"{\""},
      {"{", 0, "not JSON at byte"},
      {"{}x", 0, "not JSON at byte 11"},
      {"{}{}", 0, "not JSON at byte 11"},
      {std::string_view("{}\0\0", 4), 0, "zero byte at byte 10"},
      {"{\"\xff\":{}}", 0, "not JSON at byte"},
      {R"({"x":1})", 0, R"(at "x": a number is not allowed here)"},
      {R"({"x":null})", 0, R"(at "x": null is not allowed here)"},
      {R"({"x":true})", 0, R"(at "x": a boolean is not allowed here)"},
      {R"({"x":"F32"})", 0, R"(at "x": a string is not allowed here)"},
      {R"({"x":[1]})", 0, R"(at "x": a list is not allowed here)"},
      {R"({"x":{}})", 0, R"(at "x": dtype, shape or data_offsets is missing)"},
      {R"({"x":{"dtype":"U8","shape":[0]}})", 0, "dtype, shape or data_offsets is missing"},
      {R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"strides":[1]}})", 0, R"(unknown key "strides")"},
      {R"({"x":{"dtype":"U8","dtype":"U8"}})", 0, "dtype appears twice"},
      {R"({"x":{"dtype":8}})", 0, "a number is not allowed here"},
      {R"({"x":{"dtype":{}}})", 0, "an object is not allowed here"},
      {R"({"x":{"dtype":["U8"]}})", 0, "a list is not allowed here"},
      {R"({"x":{"shape":"U8"}})", 0, "a string is not allowed here"},
      {R"({"x":{"shape":[[1]]}})", 0, "shape: a list is not allowed here"},
      {R"({"x":{"shape":[-1]}})", 0, "shape: a negative number is not allowed here"},
      {R"({"x":{"shape":[1.0]}})", 0, "shape: a fraction or too large a number is not allowed here"},
      {R"({"x":{"shape":[1e3]}})", 0, "shape: a fraction"},
      {R"({"x":{"shape":[99999999999999999999]}})", 0, "shape: a fraction or too large"},
      {R"({"x":{"shape":[9223372036854775808]}})", 0, "shape: 9223372036854775808 is too large"},
      {R"({"x":{"shape":["1"]}})", 0, "a string is not allowed here"},
      {R"({"x":{"data_offsets":[0]}})", 0, "data_offsets: 1 numbers, not 2"},
      {R"({"x":{"data_offsets":[0,0,0]}})", 0, "data_offsets: more than 2 numbers"},
      {R"({"__metadata__":"x"})", 0, R"(at "__metadata__": a string is not allowed here)"},
      {R"({"__metadata__":{"a":1}})", 0, R"(at "__metadata__": a number is not allowed here)"},
      {R"({"__metadata__":{"a":{"b":"c"}}})", 0, "an object is not allowed here"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", 0, R"("a" appears twice)"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, R"(at "__metadata__": it appears twice)"},
  });
}

TEST(SafetensorsHeader, OffsetsThatLeaveHolesOverlapOrReachOutsideAreRefused) {
  expect_refused({
      {R"({})", 1, "the tensors have 0 bytes, but the file has 1 for them"},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3, "have 2 bytes, but the file has 3 for them"},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 1,
       R"("x" has data_offsets [0,2], but must begin at 0 and end within 1 bytes)"},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3,
       R"("x" has data_offsets [1,3], but must begin at 0 and end)"},
      {R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[2,0]}})", 2, R"("x" has data_offsets [2,0])"},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, R"("y" has data_offsets [1,3], but must begin at 2 and end)"},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"y":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
       4, R"("y" has data_offsets [3,4], but must begin at 2 and end)"},
      {R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"x":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3, R"(at "x": it appears twice)"},
      {R"({"x":{"dtype":"U8","shape":[0],"data_offsets":[9223372036854775807,9223372036854775807]}})", 0,
       "but must begin at 0 and end"},
  });
}

TEST(SafetensorsHeader, ShapesThatAreNotThatOfTheBytesAreRefused) {
  expect_refused({
      {R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, R"("x" is F32[2], but has 4 bytes)"},
      {R"({"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "but has 0 bytes"},
      {R"({"x":{"dtype":"U64","shape":[2305843009213693952],"data_offsets":[0,0]}})", 0, "but has 0 bytes"},
      {R"({"x":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1, R"("x" is F4[3], but has 1 bytes)"},
  });
}

TEST(SafetensorsHeader, DepthAndRankAreBounded) {
  const std::string deep = R"({"x":{"shape":)" + std::string(1'000'000, '[');
  EXPECT_THAT(refusal(deep, 0), HasSubstr("shape: a list is not allowed here"));
  const auto with_rank = [](int rank) {
    std::string ones = "1";
    for (int i = 1; i < rank; ++i) ones += ",1";
    return R"({"x":{"dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1]}})";
  };
  EXPECT_EQ(read(with_rank(254), 1).tensors.at(0).shape.rank(), 254);
  EXPECT_THAT(refusal(with_rank(255), 1), HasSubstr("shape: more than 254 numbers"));
}

TEST(SafetensorsHeader, NoMemoryIsTakenForALengthThatTheFileDoesNotHave) {
  using std::string_literals::operator""s;
  EXPECT_THAT(refusal("\x03\0\0\0\0\0\0\0{}"s), HasSubstr("the header claims 3 bytes in a file of 10"));
  EXPECT_THAT(refusal("\xff\xff\xff\xff\xff\xff\xff\xff{}"s),
              HasSubstr("the header claims 18446744073709551615 bytes"));
  EXPECT_THAT(refusal("\x02\0\0\0\0\0\0"s), HasSubstr("7 bytes are not a safetensors file"));
  EXPECT_THAT(refusal(""s), HasSubstr("0 bytes are not a safetensors file"));
}

TEST(SafetensorsHeader, AHeaderOfMoreThan100MillionBytesIsRefused) {
  EXPECT_THAT(refusal(std::string(100'000'000, ' '), 0), HasSubstr("does not begin with")) << "it is looked at";
  EXPECT_THAT(refusal(std::string(100'000'001, ' '), 0), HasSubstr("the header claims 100000001 bytes"));
}

TEST(SafetensorsHeader, EveryPrefixOfAFileIsRefused) {
  const std::string file = safetensors_file(R"({"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "ab");
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(refusal(file.substr(0, size)), StartsWith("m.safetensors: ")) << size;
  }
}

// The first three are the bytes of the format's own tests (huggingface/safetensors, tensor.rs).
TEST(SafetensorsHeader, IsWrittenAsTheFormatsOwnWriterDoes) {
  const auto written = [](const SafetensorsHeader& header) { return format_safetensors_header(header, "m"); };
  EXPECT_EQ(written({}), safetensors_file("{}      ", ""));
  EXPECT_EQ(written({.tensors = {{"attn.0", "F32", Shape{1, 2, 3}, 0, 24}}}),
            safetensors_file(R"({"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}})", ""));
  EXPECT_EQ(written({.tensors = {{"attn0", "F32", Shape{1, 1, 2, 3}, 0, 24}}}),
            safetensors_file(R"({"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}       )", ""));
  EXPECT_EQ(written({.metadata = {{"a\"", "\\\n\x01"}, {"b", "\u00e9"}}}),
            safetensors_file("{\"__metadata__\":{\"a\\\"\":\"\\\\\\n\\u0001\",\"b\":\"\u00e9\"}}  ", ""));
}

TEST(SafetensorsHeader, TextsThatAreNotUtf8AreNotWritten) {
  EXPECT_THROW(format_safetensors_header({.tensors = {{"\xff", "U8", Shape{}, 0, 1}}}, "m"), InvalidArgumentError);
  EXPECT_THROW(format_safetensors_header({.metadata = {{"a", "\xff"}}}, "m"), InvalidArgumentError);
}

TEST(SafetensorsHeader, IsNotWrittenLongerThanReadersTakeIt) {
  const auto written = [](size_t size) {
    const std::string rest = R"({"x":{"dtype":"","shape":[],"data_offsets":[0,1]}})";
    const SafetensorsEntry entry{"x", std::string(size - rest.size(), 'D'), Shape{}, 0, 1};
    return format_safetensors_header({.tensors = {entry}}, "m").size();
  };
  EXPECT_EQ(written(100'000'000), 100'000'008u);
  EXPECT_THROW(written(100'000'001), InvalidArgumentError);
}

TEST(SafetensorsHeader, AFileThatIsNotThereIsNotFound) {
  testing::MemoryFileSystem files;
  EXPECT_THROW(read_safetensors_header("m.safetensors", files), NotFoundError);
}

}  // namespace
}  // namespace longhaul
