#include <fmt/format.h>
#include <png.h>

#include <cstring>
#include <vector>

#include "longhaul/media/image.h"

// libpng reports errors by a jump. Each function with a setjmp works on plain values and on what its caller owns, so
// the jump skips nothing that has a destructor.
namespace longhaul {
namespace {

constexpr size_t kSignatureBytes = 8;

// As JPEG has it (ITU-R BT.601); the rest is blue's.
constexpr double kRedOfGrey = 0.299, kGreenOfGrey = 0.587;

// What may stand behind the last row: more is no image's text, and may take long to be skipped.
constexpr size_t kMostBehindRows = 4 << 20;

// Chunks that say nothing of the pixels. libpng would inflate and keep each text.
constexpr png_byte kPassedOver[] =
    "tEXt\0"
    "zTXt\0"
    "iTXt\0"
    "sPLT\0"
    "eXIf\0"
    "hIST\0"
    "tIME\0"
    "pCAL\0"
    "sCAL\0"
    "oFFs\0"
    "pHYs";

struct Progress {
  std::string_view rest;       // of what is read
  std::string* out = nullptr;  // what is written
  bool rows_read = false;
  size_t behind_rows = 0;  // bytes taken since
  char message[128] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* progress = static_cast<Progress*>(png_get_error_ptr(png));
  std::strncpy(progress->message, message, sizeof progress->message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void take_bytes(png_structp png, png_bytep out, size_t count) {
  auto* progress = static_cast<Progress*>(png_get_io_ptr(png));
  if (count > progress->rest.size()) png_error(png, "it ends too early");
  if (progress->rows_read && (progress->behind_rows += count) > kMostBehindRows) {
    png_error(png, "it has too much data after its last row");
  }
  std::memcpy(out, progress->rest.data(), count);
  progress->rest.remove_prefix(count);
}

void put_bytes(png_structp png, png_bytep bytes, size_t count) {
  bool done = false;
  try {
    static_cast<Progress*>(png_get_io_ptr(png))->out->append(reinterpret_cast<const char*>(bytes), count);
    done = true;
  } catch (const std::bad_alloc&) {
  }
  if (!done) png_error(png, "out of memory");
}

void flush_bytes(png_structp) {}

struct Header {
  png_uint_32 width = 0, height = 0;
  int depth = 0, color = 0, channels = 0;
  bool transparent = false;  // has a tRNS chunk
};

class PngReader {
 public:
  explicit PngReader(std::string_view bytes) {
    progress_.rest = bytes;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &progress_, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw ResourceExhaustedError("out of memory for decoding a PNG image");
    }
    png_set_read_fn(png_, &progress_, take_bytes);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_image_size() says what is too large
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kPassedOver, sizeof kPassedOver / 5);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  const char* message() const { return progress_.message; }
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  int channels() const { return png_get_channels(png_, info_); }

  // All return false for an error; message() says which.
  bool read_header(Header* header);
  bool prepare(const Header& header, int64_t channels, bool sixteen_bits);
  bool read_rows(png_bytepp rows);

 private:
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  Progress progress_;
};

bool PngReader::read_header(Header* header) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_read_info(png_, info_);
  png_get_IHDR(png_, info_, &header->width, &header->height, &header->depth, &header->color, nullptr, nullptr, nullptr);
  header->channels = png_get_channels(png_, info_);
  header->transparent = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
  return true;
}

bool PngReader::prepare(const Header& header, int64_t channels, bool sixteen_bits) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  const bool grey = (header.color & PNG_COLOR_MASK_COLOR) == 0;
  const bool alpha = (header.color & PNG_COLOR_MASK_ALPHA) != 0 || header.transparent;
  if (header.color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
  if (grey && header.depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
  if (header.transparent) png_set_tRNS_to_alpha(png_);
  if (channels == 1 && !grey) png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, kRedOfGrey, kGreenOfGrey);
  if (channels >= 3 && grey) png_set_gray_to_rgb(png_);
  if ((channels == 1 || channels == 3) && alpha) png_set_strip_alpha(png_);
  if (channels == 4 && !alpha) png_set_add_alpha(png_, 0xffff, PNG_FILLER_AFTER);
  if (sixteen_bits && header.depth < 16) png_set_expand_16(png_);
  if (!sixteen_bits && header.depth == 16) png_set_strip_16(png_);
  if (sixteen_bits) png_set_swap(png_);  // the file has the high byte first
  png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  return true;
}

bool PngReader::read_rows(png_bytepp rows) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_read_image(png_, rows);
  progress_.rows_read = true;
  png_read_end(png_, nullptr);
  return true;
}

// In a pixel that comes out; `channels` as asked for.
int64_t samples_of(const Header& header, int64_t channels) {
  if (channels != 0) return channels;
  const int own = header.color == PNG_COLOR_TYPE_PALETTE ? 3 : header.channels;
  return own + (header.transparent ? 1 : 0);
}

// Deflate makes no more than 1032 bytes of one; a row has a byte more than its pixels.
void check_size(const Header& header, size_t row_bytes, size_t file_bytes, uint64_t bytes_per_pixel) {
  constexpr uint64_t kMostExpansion = 1032;
  const uint64_t most_rows = (uint64_t{file_bytes} * kMostExpansion) / (uint64_t{row_bytes} + 1);
  check_image_size("PNG", header.width, header.height, bytes_per_pixel, most_rows * header.width);
}

std::vector<png_bytep> rows_of(Tensor& image, size_t row_bytes) {
  auto* bytes = static_cast<png_bytep>(image.mutable_data());
  std::vector<png_bytep> rows(static_cast<size_t>(image.shape().dim(0)));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = bytes + i * row_bytes;
  return rows;
}

class PngWriter {
 public:
  explicit PngWriter(std::string* out) {
    progress_.out = out;
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &progress_, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_write_struct(&png_, nullptr);
      throw ResourceExhaustedError("out of memory for encoding a PNG image");
    }
    png_set_write_fn(png_, &progress_, put_bytes, flush_bytes);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  const char* message() const { return progress_.message; }
  bool write(const Header& header, int compression, png_bytepp rows);

 private:
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  Progress progress_;
};

bool PngWriter::write(const Header& header, int compression, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png_)) != 0) return false;
  png_set_compression_level(png_, compression);
  png_set_IHDR(png_, info_, header.width, header.height, header.depth, header.color, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png_, info_);
  if (header.depth == 16) png_set_swap(png_);
  png_write_image(png_, rows);
  png_write_end(png_, nullptr);
  return true;
}

void check_encodable(const Tensor& image) {
  const Shape& shape = image.shape();
  const bool fits = shape.rank() == 3 && shape.dim(0) > 0 && shape.dim(0) <= PNG_UINT_31_MAX && shape.dim(1) > 0 &&
                    shape.dim(1) <= PNG_UINT_31_MAX && shape.dim(2) >= 1 && shape.dim(2) <= 4;
  if (fits && (image.dtype() == kUInt8 || image.dtype() == kUInt16)) return;
  throw InvalidArgumentError(
      fmt::format("{}{} cannot be written as a PNG image: it must be uint8 or uint16, [height, width, 1 to 4 channels]",
                  dtype_name(image.dtype()), shape.to_string()));
}

}  // namespace

void check_image_size(const char* format, uint64_t width, uint64_t height, uint64_t bytes_per_pixel,
                      uint64_t most_pixels) {
  uint64_t pixels, bytes;
  if (!__builtin_mul_overflow(width, height, &pixels) && !__builtin_mul_overflow(pixels, bytes_per_pixel, &bytes)) {
    if (pixels <= most_pixels && bytes <= static_cast<uint64_t>(kMostImageBytes)) return;
  }
  throw InvalidArgumentError(
      fmt::format("the {} image is too large: its header says {} x {} pixels", format, width, height));
}

bool is_png(std::string_view bytes) {
  const auto* signature = reinterpret_cast<png_const_bytep>(bytes.data());
  return bytes.size() >= kSignatureBytes && png_sig_cmp(signature, 0, kSignatureBytes) == 0;
}

Tensor decode_png(std::string_view bytes, int64_t channels, DType dtype) {
  if (channels < 0 || channels == 2 || channels > 4)
    throw InvalidArgumentError(
        fmt::format("the channels of a PNG image must be 0 (as in the file), 1, 3 or 4, not {}", channels));
  if (dtype != kUInt8 && dtype != kUInt16)
    throw InvalidArgumentError(fmt::format("a PNG image is decoded as uint8 or uint16, not as {}", dtype_name(dtype)));
  if (!is_png(bytes)) throw InvalidArgumentError(fmt::format("the {} bytes are not a PNG image", bytes.size()));
  PngReader reader(bytes);
  const auto check = [&](bool done) {
    if (!done) throw DataLossError(fmt::format("the PNG image is damaged: {}", reader.message()));
  };
  Header header;
  check(reader.read_header(&header));
  const auto samples = static_cast<uint64_t>(samples_of(header, channels));
  check_size(header, reader.row_bytes(), bytes.size(), samples * dtype_size(dtype));
  check(reader.prepare(header, channels, dtype == kUInt16));
  Tensor image(dtype, {header.height, header.width, reader.channels()});
  if (reader.row_bytes() != image.size_bytes() / header.height) throw InternalError("a PNG row has an unexpected size");
  std::vector<png_bytep> rows = rows_of(image, reader.row_bytes());
  check(reader.read_rows(rows.data()));
  return image;
}

std::string encode_png(const Tensor& image, int64_t compression) {
  check_encodable(image);
  if (compression < -1 || compression > 9)
    throw InvalidArgumentError(
        fmt::format("the compression of a PNG image must be -1 (the default) to 9, not {}", compression));
  constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                             PNG_COLOR_TYPE_RGB_ALPHA};
  Header header;
  header.height = static_cast<png_uint_32>(image.shape().dim(0));
  header.width = static_cast<png_uint_32>(image.shape().dim(1));
  header.depth = image.dtype() == kUInt8 ? 8 : 16;
  header.color = kColors[image.shape().dim(2) - 1];
  Tensor source = image;  // libpng takes rows that it does not change as if it could
  std::vector<png_bytep> rows = rows_of(source, image.size_bytes() / header.height);
  std::string out;
  PngWriter writer(&out);
  if (!writer.write(header, static_cast<int>(compression), rows.data())) {
    throw InvalidArgumentError(fmt::format("the image cannot be written as PNG: {}", writer.message()));
  }
  return out;
}

}  // namespace longhaul
