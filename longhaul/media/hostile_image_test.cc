// Images that are small and take long, or much memory, to decode.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <jpeglib.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "longhaul/media/image.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/memory_growth.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

template <typename Body>
double seconds_of(const Body& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string compressed(const std::string& bytes) {
  std::string out(compressBound(bytes.size()), '\0');
  uLongf size = out.size();
  compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 9);
  out.resize(size);
  return out;
}

std::string chunk(const std::string& type, const std::string& data) {
  const auto number = [](uint64_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
    return bytes;
  };
  const std::string body = type + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return number(data.size()) + body + number(crc);
}

constexpr size_t kBeforeChunks = 8 + 25;  // the signature and the header
constexpr size_t kEndChunk = 12;

Tensor two_pixels() {
  return Tensor::of<uint8_t>({1, 2, 1}, {7, 200});
}

// A PNG image with these chunks before its rows.
std::string png_with(const std::string& chunks) {
  return encode_png(two_pixels()).insert(kBeforeChunks, chunks);
}

TEST(HostilePng, TextsAreNotInflated) {
  const std::string text = chunk("zTXt", std::string("key\0\0", 5) + compressed(std::string(7'900'000, 'x')));
  std::string texts;
  for (int i = 0; i < 900; ++i) texts += text;
  const std::string png = png_with(texts);
  Tensor image;
  EXPECT_LT(seconds_of([&] { image = decode_png(png); }), 5) << "inflating them takes 20 s and more";
  EXPECT_TRUE(identical(image, two_pixels()));
  const auto growth = testing::memory_growth([&] { decode_png(png); });
  if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
  EXPECT_LT(*growth, 8u << 20);
}

TEST(HostilePng, WhatSaysNothingOfThePixelsIsPassedOver) {
  for (const char* type : {"tEXt", "zTXt", "iTXt", "sPLT", "eXIf", "hIST", "tIME", "pCAL", "sCAL", "oFFs", "pHYs"}) {
    EXPECT_TRUE(identical(decode_png(png_with(chunk(type, "nonsense"))), two_pixels())) << type;
  }
}

TEST(HostilePng, LittleStandsBehindTheLastRow) {
  const auto with_tail = [](size_t bytes) {
    std::string png = encode_png(two_pixels());
    return png.insert(png.size() - kEndChunk, chunk("tEXt", "key" + std::string(bytes, '\0')));
  };
  EXPECT_TRUE(identical(decode_png(with_tail(1 << 20)), two_pixels()));
  EXPECT_THAT(coded_error_of([&] { decode_png(with_tail(5 << 20)); }),
              HasSubstr("DATA_LOSS: the PNG image is damaged: it has too much data after its last row"));
}

std::string jpeg_of(int64_t side, bool progressive) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_height = jpeg.image_width = static_cast<unsigned>(side);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<unsigned char> row(3 * static_cast<size_t>(side), 90);
  unsigned char* rows = row.data();
  for (int64_t y = 0; y < side; ++y) jpeg_write_scanlines(&jpeg, &rows, 1);
  jpeg_finish_compress(&jpeg);
  const std::string bytes(reinterpret_cast<const char*>(out), size);
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return bytes;
}

// One that says that it is 17000 x 17000: 827 MiB as it comes out, and as much again in coefficients.
std::string claims_17000(bool progressive) {
  std::string jpeg = jpeg_of(8, progressive);
  const size_t frame = jpeg.find(progressive ? "\xff\xc2" : "\xff\xc0");
  jpeg.replace(frame + 5, 4, "\x42\x68\x42\x68");
  return jpeg + std::string(100'000, '\0');
}

TEST(HostileJpeg, CoefficientsOfAProgressiveImageCountToo) {
  const std::string refusal = coded_error_of([] { decode_jpeg(claims_17000(true)); });
  EXPECT_THAT(refusal,
              HasSubstr("INVALID_ARGUMENT: the JPEG image is too large: 17000 x 17000 pixels in several scans"));
  EXPECT_THAT(coded_error_of([] { decode_jpeg(claims_17000(false)); }), HasSubstr("DATA_LOSS")) << "it ends too early";
  const auto growth = testing::memory_growth([] { decode_jpeg(claims_17000(true)); });
  if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
  EXPECT_LT(*growth, 8u << 20);
}

TEST(HostileJpeg, AProgressiveImageOfHonestSizeIsDecoded) {
  EXPECT_EQ(decode_jpeg(jpeg_of(1000, true)).shape(), Shape({1000, 1000, 3}));
}

TEST(HostileJpeg, ScansHaveALimit) {
  const std::string jpeg = jpeg_of(64, true);
  const size_t last_scan = jpeg.rfind("\xff\xda");
  const std::string scan = jpeg.substr(last_scan, jpeg.size() - 2 - last_scan);
  const auto with_scans = [&](int scans) {
    std::string more = jpeg;
    for (int i = 0; i < scans; ++i) more.insert(last_scan, scan);
    return more;
  };
  EXPECT_EQ(coded_error_of([&] { decode_jpeg(with_scans(20)); }), "");
  EXPECT_THAT(coded_error_of([&] { decode_jpeg(with_scans(200)); }),
              HasSubstr("DATA_LOSS: the JPEG image is damaged: it has more than 100 scans"));
}

}  // namespace
}  // namespace longhaul
