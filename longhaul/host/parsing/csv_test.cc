#include "longhaul/host/parsing/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "longhaul/host/list_fixture.h"
#include "longhaul/host/parsing/decode_raw.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

Tensor required(DType dtype) {
  return Tensor(dtype, {0});
}

Strings fields_of(const std::string& record, const CsvFormat& format = {}) {
  CsvSplitter splitter(format);
  const auto fields = splitter.split(record);
  return {fields.begin(), fields.end()};
}

std::vector<Tensor> decode(const Strings& records, const std::vector<Tensor>& defaults, const CsvFormat& format = {}) {
  return decode_csv(Tensor::of(records), Tensor(), defaults, format);
}

TEST(Csv, FieldsStandBetweenDelimiters) {
  EXPECT_THAT(fields_of("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(fields_of(",,"), ElementsAre("", "", ""));
  EXPECT_THAT(fields_of(""), ElementsAre(""));
  EXPECT_THAT(fields_of(" a , b \r\n"), ElementsAre(" a ", " b "));
  EXPECT_THAT(fields_of("a,b\tc", {.delimiter = '\t'}), ElementsAre("a,b", "c"));
}

// The examples of RFC 4180, section 2.
TEST(Csv, QuotedFieldsHoldDelimitersQuotesAndEndsOfLines) {
  EXPECT_THAT(fields_of("\"aaa\",\"b \r\nbb\",\"ccc\""), ElementsAre("aaa", "b \r\nbb", "ccc"));
  EXPECT_THAT(fields_of("\"aaa\",\"b\"\"bb\",\"ccc\""), ElementsAre("aaa", "b\"bb", "ccc"));
  EXPECT_THAT(fields_of("\"\",\"\"\"\",\",\",x"), ElementsAre("", "\"", ",", "x"));
  EXPECT_THAT(fields_of("x,\"\""), ElementsAre("x", ""));
}

TEST(Csv, WithoutQuotingQuotesAreCharactersLikeOthers) {
  EXPECT_THAT(fields_of("\"a\",b\"", {.quotes = false}), ElementsAre("\"a\"", "b\""));
}

TEST(Csv, AMalformedRecordNamesItsColumn) {
  EXPECT_THAT(refusal_of([] { fields_of("a,b\"c"); }), HasSubstr("column 2: a quote in an unquoted field"));
  EXPECT_THAT(refusal_of([] { fields_of("\"a,b"); }), HasSubstr("column 1: a quote is not closed"));
  EXPECT_THAT(refusal_of([] { fields_of("a,b,\"c\"d,e"); }), HasSubstr("column 3: unexpected text between"));
  EXPECT_THAT(refusal_of([] { fields_of("a\nb,c"); }), HasSubstr("column 1: a line break"));
}

TEST(Csv, ColumnsHaveTheDtypesOfTheirDefaults) {
  const auto columns =
      decode({"1,-2,0.5,1e300,x", " +3 ,4,-inf,nan,\"y,\""},
             {required(kInt32), required(kInt64), required(kFloat), required(kDouble), required(kString)});
  EXPECT_THAT(list<int32_t>(columns[0]), ElementsAre(1, 3));
  EXPECT_THAT(list<int64_t>(columns[1]), ElementsAre(-2, 4));
  EXPECT_THAT(list<float>(columns[2]), ElementsAre(0.5f, -INFINITY));
  EXPECT_EQ(list<double>(columns[3])[0], 1e300);
  EXPECT_TRUE(std::isnan(list<double>(columns[3])[1]));
  EXPECT_THAT(list<std::string>(columns[4]), ElementsAre("x", "y,"));
}

TEST(Csv, ResultsHaveTheShapeOfTheRecords) {
  const Tensor records = Tensor::of<std::string>({1, 2}, {"1", "2"});
  const std::vector<Tensor> defaults{required(kInt32)};
  EXPECT_EQ(decode_csv(records, Tensor(), defaults, {})[0].shape(), (Shape{1, 2}));
  EXPECT_EQ(decode_csv(Tensor::scalar("7"), Tensor(), defaults, {})[0].item<int32_t>(), 7);
  EXPECT_EQ(decode({}, defaults)[0].shape(), (Shape{0}));
}

TEST(Csv, WhatIsMissingHasItsDefault) {
  const auto columns = decode(
      {",NA,\"\"", "1,2,3"}, {Tensor::of<int32_t>({7}), Tensor::scalar(0.5f), Tensor::scalar("d")}, {.na_value = "NA"});
  EXPECT_THAT(list<int32_t>(columns[0]), ElementsAre(7, 1));
  EXPECT_THAT(list<float>(columns[1]), ElementsAre(0.5f, 2.0f));
  EXPECT_THAT(list<std::string>(columns[2]), ElementsAre("d", "3"));
}

TEST(Csv, OnlyTheSelectedColumnsAreRead) {
  const auto columns =
      decode({"a,1,b,2", "c,3,,4,and more"}, {required(kInt32), required(kInt64)}, {.columns = {1, 3}});
  EXPECT_THAT(list<int32_t>(columns[0]), ElementsAre(1, 3));
  EXPECT_THAT(list<int64_t>(columns[1]), ElementsAre(2, 4));
}

TEST(Csv, ErrorsNameTheRecordAndTheColumn) {
  const std::vector<Tensor> defaults{required(kInt32), Tensor::scalar(1.0f)};
  const auto error = [&](const std::string& second) { return refusal_of([&] { decode({"1,2", second}, defaults); }); };
  EXPECT_EQ(error("x,2"), "record 2, column 1: \"x\" is not a valid int32");
  EXPECT_EQ(error("2147483648,2"), "record 2, column 1: \"2147483648\" is not a valid int32");
  EXPECT_EQ(error("1,2 3"), "record 2, column 2: \"2 3\" is not a valid float");
  EXPECT_EQ(error(",2"), "record 2, column 1: the field is required but missing");
  EXPECT_EQ(error("1"), "record 2, the record has 1 fields, want 2");
  EXPECT_EQ(error("1,2,3"), "record 2, the record has 3 fields, want 2");
  EXPECT_EQ(error("1,2\"3"), "record 2, column 2: a quote in an unquoted field");
}

TEST(Csv, ErrorsNameTheFileAndTheLineWhereTheKeysDo) {
  const Tensor records = Tensor::of<std::string>({"1", "one"}), keys = Tensor::of<std::string>({"a.csv:7", "a.csv:8"});
  const std::vector<Tensor> defaults{required(kInt64)};
  EXPECT_EQ(refusal_of([&] { decode_csv(records, keys, defaults, {}); }),
            "a.csv:8, column 1: \"one\" is not a valid int64");
  EXPECT_THAT(refusal_of([&] { decode_csv(Tensor::scalar("1"), keys, defaults, {}); }),
              HasSubstr("2 keys were given for 1 records"));
}

TEST(Csv, ALongFieldIsCutInTheMessage) {
  EXPECT_LT(refusal_of([] { decode({std::string(1 << 20, 'x')}, {required(kInt32)}); }).size(), 200u);
}

// Common records are read in a quicker way, which must not show.
TEST(Csv, AFieldIsReadTheSameWhateverTheWayToIt) {
  const std::vector<Tensor> defaults{Tensor::scalar(9.0f), Tensor::scalar<int64_t>(9), Tensor::scalar("d")};
  const Strings records{"1.5,2,x",   "1.5,2,\"x\"", " 1.5,+2,x", ",,",  "1e999,2,x\r\n", "inf,-2,x y",
                        "1.5,2,x,4", "1.5,2",       "1.5,2x,x",  "x,2", "1.5,2,x\"",     "1.5,2.5,x"};
  const CsvFormat quick, slow{.columns = {0, 1, 2}}, no_quotes{.quotes = false};
  for (const std::string& record : records) {
    std::vector<Tensor> one, other;
    const std::string error = refusal_of([&] { one = decode({record}, defaults, quick); });
    refusal_of([&] { other = decode({record}, defaults, slow); });
    if (error == "") {
      for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(identical(one[i], other[i])) << record;
    } else if (record != "1.5,2,x,4") {
      EXPECT_TRUE(other.empty()) << record;
    }
  }
  EXPECT_EQ(decode({"1,2,a\"b"}, defaults, no_quotes)[2].item<std::string>(), "a\"b");
  EXPECT_EQ(decode({"1.2.3"}, {required(kInt32), required(kInt32), required(kInt32)}, {.delimiter = '.'}).size(), 3u);
}

TEST(Csv, EveryPrefixOfARecordIsReadOrRefused) {
  const std::string record = "1,\"a \"\"b\"\", c\",2.5\r\n";
  const std::vector<Tensor> defaults{required(kInt32), required(kString), required(kFloat)};
  for (size_t size = 0; size <= record.size(); ++size) {
    const std::string error = refusal_of([&] { decode({record.substr(0, size)}, defaults); });
    EXPECT_EQ(error == "", size >= std::string("1,\"a \"\"b\"\", c\",2").size()) << size << error;
  }
}

TEST(Csv, DefaultsOfSeveralValuesAndOddDtypesAreRefused) {
  EXPECT_THAT(refusal_of([] { decode({"1"}, {Tensor::of<int32_t>({1, 2})}); }), HasSubstr("more than one value"));
  EXPECT_THAT(refusal_of([] { decode({"1"}, {Tensor::of<uint8_t>({1})}); }), HasSubstr("cannot have type uint8"));
}

TEST(DecodeRaw, BytesBecomeNumbersOfEitherOrder) {
  const Tensor strings = Tensor::of<std::string>({std::string("\1\0\2\0", 4), std::string("\0\1\0\2", 4)});
  const Tensor little = decode_raw(strings, kUInt16), big = decode_raw(strings, kUInt16, false);
  EXPECT_EQ(little.shape(), (Shape{2, 2}));
  EXPECT_THAT(list<uint16_t>(little), ElementsAre(1, 2, 256, 512));
  EXPECT_THAT(list<uint16_t>(big), ElementsAre(256, 512, 1, 2));
  EXPECT_THAT(list<bool>(decode_raw(Tensor::scalar(std::string("\0\1\2", 3)), kBool)), ElementsAre(false, true, true));
  EXPECT_EQ(decode_raw(Tensor::of(Strings{}), kFloat).shape(), (Shape{0, 0}));
}

TEST(DecodeRaw, ComplexNumbersAreTurnedRoundInHalves) {
  const std::string bytes("\x3f\x80\0\0\x40\0\0\0", 8);  // 1 and 2, big endian
  EXPECT_EQ(decode_raw(Tensor::scalar(bytes), kComplex64, false).flat<std::complex<float>>()[0],
            std::complex<float>(1, 2));
}

TEST(DecodeRaw, UnevenLengthsAreRefused) {
  EXPECT_THAT(refusal_of([] { decode_raw(Tensor::of<std::string>({"ab", "a"}), kUInt8); }),
              HasSubstr("the same length"));
  EXPECT_THAT(refusal_of([] { decode_raw(Tensor::scalar("abc"), kUInt16); }),
              HasSubstr("3 bytes, which is not a multiple of 2"));
  EXPECT_THAT(refusal_of([] { decode_raw(Tensor::scalar("abc"), kString); }), HasSubstr("cannot be decoded"));
}

TEST(StringToNumber, TextsBecomeNumbers) {
  const Tensor texts = Tensor::of<std::string>({"1", " -2 "});
  EXPECT_THAT(list<float>(string_to_number(texts, kFloat)), ElementsAre(1, -2));
  EXPECT_THAT(list<int64_t>(string_to_number(texts, kInt64)), ElementsAre(1, -2));
  EXPECT_EQ(string_to_number(Tensor::scalar("1e999"), kDouble).item<double>(), INFINITY);
  for (const char* text : {"", "x", "1x", "+-1", "0x10", "1 2"}) {
    EXPECT_THAT(refusal_of([&] { string_to_number(Tensor::scalar(text), kInt32); }), HasSubstr("is not a valid int32"));
  }
}

}  // namespace
}  // namespace longhaul
