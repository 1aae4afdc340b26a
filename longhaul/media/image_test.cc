#include "longhaul/media/image.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>

#include "longhaul/ops/image_ops.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/scripted_session.h"

namespace longhaul {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Put together after the PNG specification (ISO/IEC 15948), by other means than libpng.
constexpr char kPalette[] =
    "89504e470d0a1a0a0000000d4948445200000002000000010803000000c3fc8fb800000006504c54450a141e28323cd51bb4"
    "e90000000274524e53ff80080fb36a0000000b4944415478da6360600400000400022cde48ad0000000049454e44ae426082";
constexpr char kOneBit[] =
    "89504e470d0a1a0a0000000d4948445200000003000000020100000000b50f5bb70000000c4944415478da6358c0e0000002"
    "2400e14d16e85e0000000049454e44ae426082";
constexpr char kRgb16[] =
    "89504e470d0a1a0a0000000d49484452000000010000000210020000004673fd33000000164944415478da63103209ab98b5"
    "87818191818981190017220271b2dd8c420000000049454e44ae426082";
constexpr char kInterlaced[] =
    "89504e470d0a1a0a0000000d4948445200000004000000040800000001fb9df1340000001f4944415478da63606010610848"
    "61e0926388ca63d030b27163a868ea990600246b04b172e5dbc10000000049454e44ae426082";
constexpr char kAbsurd[] =
    "89504e470d0a1a0a0000000d494844527fffffff7fffffff080600000014c90b660000000c4944415478da6360a03d000000"
    "640001b899ef990000000049454e44ae426082";
constexpr char kWide[] =
    "89504e470d0a1a0a0000000d49484452000186a0000186a008000000008d3954140000000c4944415478da6360a03d000000"
    "640001b899ef990000000049454e44ae426082";

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

template <typename T>
std::vector<int> list(const Tensor& tensor) {
  return {tensor.flat<T>().begin(), tensor.flat<T>().end()};
}

std::vector<int> pixels(const std::string& png, int64_t channels = 0) {
  return list<uint8_t>(decode_png(png, channels));
}

struct JpegWriting {
  bool progressive = false;
  unsigned char jfif_major = 1;
};

std::string jpeg_of(const Tensor& image, J_COLOR_SPACE colors, const JpegWriting& writing = {}) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_height = static_cast<unsigned>(image.shape().dim(0));
  jpeg.image_width = static_cast<unsigned>(image.shape().dim(1));
  jpeg.input_components = static_cast<int>(image.shape().dim(2));
  jpeg.in_color_space = colors;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  if (writing.progressive) jpeg_simple_progression(&jpeg);
  jpeg.JFIF_major_version = writing.jfif_major;
  jpeg_start_compress(&jpeg, TRUE);
  const size_t row_bytes = image.size_bytes() / jpeg.image_height;
  for (size_t y = 0; y < jpeg.image_height; ++y) {
    auto* row = const_cast<unsigned char*>(static_cast<const unsigned char*>(image.data()) + y * row_bytes);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  const std::string bytes(reinterpret_cast<const char*>(out), size);
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return bytes;
}

// An image of one colour.
Tensor plain(int64_t height, int64_t width, const std::vector<uint8_t>& colour) {
  std::vector<uint8_t> values;
  for (int64_t i = 0; i < height * width; ++i) values.insert(values.end(), colour.begin(), colour.end());
  return Tensor::of<uint8_t>({height, width, static_cast<int64_t>(colour.size())}, values);
}

TEST(Png, APaletteBecomesColoursWithTheirAlpha) {
  const std::string png = from_hex(kPalette);
  EXPECT_EQ(decode_png(png).shape(), (Shape{1, 2, 4}));
  EXPECT_THAT(pixels(png), ElementsAre(10, 20, 30, 255, 40, 50, 60, 128));
  EXPECT_THAT(pixels(png, 4), ElementsAre(10, 20, 30, 255, 40, 50, 60, 128));
  EXPECT_THAT(pixels(png, 3), ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_EQ(decode_png(png, 1).shape(), (Shape{1, 2, 1}));
}

TEST(Png, GreyIsMadeOfColoursByTheWeightsOfJpeg) {
  EXPECT_THAT(pixels(encode_png(plain(1, 1, {200, 30, 90})), 1), ElementsAre(87));  // of 87.67; Rec. 709 makes 70
  EXPECT_THAT(pixels(encode_png(plain(1, 1, {77, 77, 77})), 1), ElementsAre(77));
}

TEST(Png, SingleBitsAreBlackOrWhite) {
  const std::string png = from_hex(kOneBit);
  EXPECT_THAT(pixels(png), ElementsAre(255, 0, 255, 0, 255, 0));
  EXPECT_EQ(decode_png(png, 3).shape(), (Shape{2, 3, 3}));
  EXPECT_THAT(list<uint16_t>(decode_png(png, 0, kUInt16)), ElementsAre(65535, 0, 65535, 0, 65535, 0));
  const auto rgba = pixels(png, 4);
  EXPECT_THAT(std::vector<int>(rgba.begin(), rgba.begin() + 8), ElementsAre(255, 255, 255, 255, 0, 0, 0, 255));
}

TEST(Png, SixteenBitsAreKeptOrCut) {
  const std::string png = from_hex(kRgb16);
  EXPECT_THAT(list<uint16_t>(decode_png(png, 0, kUInt16)), ElementsAre(0x1234, 0x5678, 0x9abc, 1, 2, 3));
  EXPECT_THAT(pixels(png), ElementsAre(0x12, 0x56, 0x9a, 0, 0, 0));
}

TEST(Png, InterlacedRowsComeInTheirOrder) {
  EXPECT_THAT(pixels(from_hex(kInterlaced)),
              ElementsAre(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150));
}

TEST(Png, WhatIsEncodedComesBack) {
  for (int64_t channels = 1; channels <= 4; ++channels) {
    for (const DType dtype : {kUInt8, kUInt16}) {
      Tensor image(dtype, {3, 5, channels});
      auto* bytes = static_cast<unsigned char*>(image.mutable_data());
      for (size_t i = 0; i < image.size_bytes(); ++i) bytes[i] = static_cast<unsigned char>(37 * i);
      for (const int64_t compression : {-1, 0, 9}) {
        EXPECT_TRUE(identical(decode_png(encode_png(image, compression), 0, dtype), image)) << channels;
      }
    }
  }
}

TEST(Png, WhatIsNoImageCannotBeEncoded) {
  EXPECT_THAT(coded_error_of([] { encode_png(Tensor(kUInt8, {2, 2})); }),
              HasSubstr("INVALID_ARGUMENT: uint8[2,2] cannot be written as a PNG image"));
  EXPECT_THAT(coded_error_of([] { encode_png(Tensor(kUInt8, {2, 2, 5})); }), HasSubstr("[2,2,5]"));
  EXPECT_THAT(coded_error_of([] { encode_png(Tensor(kUInt8, {0, 2, 1})); }), HasSubstr("[0,2,1]"));
  EXPECT_THAT(coded_error_of([] { encode_png(Tensor(kFloat, {2, 2, 1})); }), HasSubstr("float"));
}

TEST(Png, EveryPrefixIsRefused) {
  for (const char* hex : {kPalette, kInterlaced}) {
    const std::string png = from_hex(hex);
    for (size_t size = 0; size < png.size(); ++size) {
      const std::string error = coded_error_of([&] { decode_png(png.substr(0, size)); });
      EXPECT_THAT(error, HasSubstr(size < 8 ? "INVALID_ARGUMENT: the" : "DATA_LOSS: the PNG image is damaged: "))
          << size;
    }
  }
}

TEST(Png, EveryFlippedBitIsReadOrRefused) {
  const std::string png = from_hex(kPalette);
  for (size_t bit = 0; bit < 8 * png.size(); ++bit) {
    std::string damaged = png;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    coded_error_of([&] { EXPECT_LE(decode_png(damaged).num_elements(), 8); });
  }
}

TEST(Png, AnAbsurdSizeTakesNoMemory) {
  EXPECT_THAT(
      coded_error_of([] { decode_png(from_hex(kAbsurd)); }),
      HasSubstr("INVALID_ARGUMENT: the PNG image is too large: its header says 2147483647 x 2147483647 pixels"));
  EXPECT_THAT(coded_error_of([] { decode_png(from_hex(kWide)); }),
              HasSubstr("too large: its header says 100000 x 100000 pixels"));
}

// A grey image that says that it is that large, with bytes enough, and ends too early.
std::string claims_size(uint32_t side) {
  std::string png = encode_png(plain(1, 1, {7}));
  const auto put = [&png](size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) png[at + i] = static_cast<char>(value >> (24 - 8 * i));
  };
  put(16, side);
  put(20, side);
  put(29, static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(png.data() + 12), 17)));
  return png + std::string(size_t{side} * side / 1000, '\0');
}

TEST(Png, WhatCountsIsTheSizeThatComesOut) {
  const std::string png = claims_size(17'000);  // 276 MiB in grey, 1.1 GiB with four channels
  EXPECT_THAT(coded_error_of([&] { decode_png(png); }), HasSubstr("DATA_LOSS"));
  EXPECT_THAT(coded_error_of([&] { decode_png(png, 3); }), HasSubstr("DATA_LOSS"));
  EXPECT_THAT(coded_error_of([&] { decode_png(png, 4); }),
              HasSubstr("too large: its header says 17000 x 17000 pixels"));
  EXPECT_THAT(coded_error_of([&] { decode_png(png, 3, kUInt16); }),
              HasSubstr("too large: its header says 17000 x 17000 pixels"));
}

TEST(Png, OtherChannelsAndDtypesAreRefused) {
  EXPECT_THAT(coded_error_of([] { decode_png(from_hex(kPalette), 2); }),
              HasSubstr("0 (as in the file), 1, 3 or 4, not 2"));
  EXPECT_THAT(coded_error_of([] { decode_png(from_hex(kPalette), 0, kFloat); }), HasSubstr("as float"));
  EXPECT_THAT(coded_error_of([] { decode_png("GIF89a, and more"); }), HasSubstr("the 16 bytes are not a PNG image"));
}

TEST(Jpeg, ColoursAndGreyAreDecodedAsAsked) {
  const std::string grey = jpeg_of(plain(5, 7, {100}), JCS_GRAYSCALE);
  const std::string colour = jpeg_of(plain(5, 7, {250, 0, 0}), JCS_RGB);
  EXPECT_EQ(decode_jpeg(grey).shape(), (Shape{5, 7, 1}));
  EXPECT_THAT(list<uint8_t>(decode_jpeg(grey, 3)), Each(100));
  EXPECT_EQ(decode_jpeg(colour).shape(), (Shape{5, 7, 3}));
  const auto rgb = list<uint8_t>(decode_jpeg(colour));
  EXPECT_NEAR(rgb[0], 250, 2);
  EXPECT_NEAR(rgb[1], 0, 2);
  EXPECT_NEAR(list<uint8_t>(decode_jpeg(colour, 1))[0], 75, 2);  // 0.299 of the red
}

TEST(Jpeg, InksBecomeColours) {
  const std::string cmyk = jpeg_of(plain(8, 8, {255, 0, 255, 128}), JCS_CMYK);  // inverted, as Adobe does
  EXPECT_EQ(decode_jpeg(cmyk).shape(), (Shape{8, 8, 3}));
  const auto rgb = list<uint8_t>(decode_jpeg(cmyk));
  EXPECT_NEAR(rgb[0], 128, 2);
  EXPECT_NEAR(rgb[1], 0, 2);
  EXPECT_THAT(coded_error_of([&] { decode_jpeg(cmyk, 1); }), HasSubstr("decode it as RGB"));
}

TEST(Jpeg, AnotherVersionOfJfifIsNoDamage) {
  const std::string jpeg = jpeg_of(plain(8, 8, {100}), JCS_GRAYSCALE, {.jfif_major = 2});
  EXPECT_THAT(list<uint8_t>(decode_jpeg(jpeg)), Each(100));
}

TEST(Jpeg, ARatioMakesTheImageSmaller) {
  const std::string jpeg = jpeg_of(plain(16, 24, {1, 2, 3}), JCS_RGB);
  EXPECT_EQ(decode_jpeg(jpeg, 0, 2).shape(), (Shape{8, 12, 3}));
  EXPECT_EQ(decode_jpeg(jpeg, 0, 8, false).shape(), (Shape{2, 3, 3}));
  EXPECT_THAT(coded_error_of([&] { decode_jpeg(jpeg, 0, 3); }), HasSubstr("1, 2, 4 or 8, not 3"));
}

TEST(Jpeg, EveryPrefixIsRefused) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = jpeg_of(plain(20, 20, {200, 30, 90}), JCS_RGB, {.progressive = progressive});
    EXPECT_EQ(coded_error_of([&] { decode_jpeg(jpeg); }), "");
    for (size_t size = 0; size < jpeg.size(); ++size) {
      const std::string error = coded_error_of([&] { decode_jpeg(jpeg.substr(0, size)); });
      EXPECT_THAT(error, HasSubstr(size < 3 ? "INVALID_ARGUMENT: the" : "DATA_LOSS: the JPEG image is damaged: "))
          << size;
    }
  }
}

TEST(Jpeg, EveryFlippedBitIsReadOrRefused) {
  const std::string jpeg = jpeg_of(plain(9, 9, {200, 30, 90}), JCS_RGB);
  for (size_t bit = 0; bit < 8 * jpeg.size(); ++bit) {
    std::string damaged = jpeg;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const std::string error = coded_error_of([&] { decode_jpeg(damaged); });
    EXPECT_TRUE(error == "" || error.find("image") != std::string::npos || error.find("bytes") != std::string::npos)
        << error;
  }
}

TEST(Jpeg, AnAbsurdSizeTakesNoMemory) {
  std::string jpeg = jpeg_of(plain(8, 8, {1, 2, 3}), JCS_RGB);
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_THAT(coded_error_of([&] { decode_jpeg(jpeg); }),
              HasSubstr("INVALID_ARGUMENT: the JPEG image is too large: its header says 65500 x 65500 pixels"));
}

TEST(Jpeg, WhatCountsIsTheSizeThatComesOut) {
  std::string jpeg = jpeg_of(plain(8, 8, {7}), JCS_GRAYSCALE);
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\x4e\x20\x4e\x20");  // 20000 x 20000
  jpeg += std::string(50'000, '\0');
  EXPECT_THAT(coded_error_of([&] { decode_jpeg(jpeg); }), HasSubstr("DATA_LOSS"));
  EXPECT_THAT(coded_error_of([&] { decode_jpeg(jpeg, 3); }),
              HasSubstr("too large: its header says 20000 x 20000 pixels"));
}

TEST(ImageOps, ImagesAreDecodedAndEncodedInAGraph) {
  Graph graph;
  const Scope root(graph);
  testing::ScriptedSession session(graph);
  const Tensor image = plain(2, 3, {1, 2, 3});
  const Output encoded = ops::encode_png(root, ops::constant(root, image));
  const Output decoded = ops::decode_png(root, encoded, 3);
  EXPECT_EQ(decoded.shape(), (Shape{-1, -1, 3}));
  EXPECT_TRUE(identical(session.run(decoded), image));
  EXPECT_EQ(session.run(ops::decode_png(root, encoded, 1, kUInt16)).dtype(), kUInt16);
  const Output bytes = ops::constant(root, Tensor::scalar(jpeg_of(plain(8, 8, {7}), JCS_GRAYSCALE)));
  EXPECT_THAT(list<uint8_t>(session.run(ops::decode_jpeg(root, bytes, {.channels = 3, .ratio = 4}))), Each(7));
  const Output wrong = ops::decode_png(root, ops::constant(root, Tensor::scalar("GIF89a")), 0, kUInt8, "wrong");
  EXPECT_THAT(coded_error_of([&] { session.run(wrong); }), HasSubstr("wrong: the "));
  EXPECT_THAT(coded_error_of([&] { ops::decode_png(root, bytes, 2); }), HasSubstr("channels must not be 2"));
  EXPECT_THAT(coded_error_of([&] { ops::decode_jpeg(root, bytes, {.ratio = 3}); }), HasSubstr("ratio must be"));
}

TEST(ImageOps, EitherOperationTakesBothFormats) {
  Graph graph;
  const Scope root(graph);
  testing::ScriptedSession session(graph);
  const Tensor image = plain(8, 8, {7, 7, 7});
  const Output png = ops::constant(root, Tensor::scalar(encode_png(image)));
  const Output jpeg = ops::constant(root, Tensor::scalar(jpeg_of(image, JCS_RGB)));
  EXPECT_TRUE(identical(session.run(ops::decode_jpeg(root, png)), image));
  EXPECT_TRUE(identical(session.run(ops::decode_png(root, jpeg)), image));
  EXPECT_EQ(session.run(ops::decode_png(root, jpeg, 1)).shape(), (Shape{8, 8, 1}));
  EXPECT_THAT(coded_error_of([&] { session.run(ops::decode_png(root, jpeg, 0, kUInt16)); }),
              HasSubstr("can only be decoded as uint8"));
  EXPECT_THAT(coded_error_of([&] { session.run(ops::decode_png(root, jpeg, 4)); }),
              HasSubstr("0 (as in the file), 1 or 3, not 4"));
  EXPECT_THAT(coded_error_of([&] { session.run(ops::decode_jpeg(root, png, {.ratio = 2})); }),
              HasSubstr("a ratio of 1"));
}

}  // namespace
}  // namespace longhaul
