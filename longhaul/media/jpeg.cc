#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <vector>

#include "longhaul/media/image.h"

// libjpeg reports errors by a jump. Each function with a setjmp works on plain values and on what its caller owns, so
// the jump skips nothing that has a destructor.
namespace longhaul {
namespace {

struct Errors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void on_error(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<Errors*>(jpeg->err);
  jpeg->err->format_message(jpeg, errors->message);
  std::longjmp(errors->jump, 1);
}

// Most of what libjpeg warns of is damage that it has painted over. A version of JFIF that it does not know is none.
void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  switch (jpeg->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR: return;
    default: on_error(jpeg);
  }
}

void say_nothing(j_common_ptr) {}

// An image that comes in many scans is decoded as a whole in each of them, and a scan can be a few bytes.
constexpr int kMostScans = 100;

void count_scans(j_common_ptr jpeg) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<Errors*>(jpeg->err);
  std::snprintf(errors->message, sizeof errors->message, "it has more than %d scans", kMostScans);
  std::longjmp(errors->jump, 1);
}

class JpegReader {
 public:
  explicit JpegReader(std::string_view bytes) : bytes_(bytes) {
    jpeg_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = on_error;
    errors_.manager.emit_message = on_message;
    errors_.manager.output_message = say_nothing;
    progress_.progress_monitor = count_scans;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  const char* message() const { return errors_.message; }
  jpeg_decompress_struct& jpeg() { return jpeg_; }

  // All return false for an error; message() says which.
  bool read_header();
  bool start();
  bool read_row(JSAMPROW row);
  bool finish();

 private:
  const std::string_view bytes_;
  Errors errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
};

bool JpegReader::read_header() {
  if (setjmp(errors_.jump) != 0) return false;
  jpeg_create_decompress(&jpeg_);
  jpeg_.progress = &progress_;
  jpeg_.mem->max_memory_to_use = kMostImageBytes;
  jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
  jpeg_read_header(&jpeg_, TRUE);
  return true;
}

bool JpegReader::start() {
  if (setjmp(errors_.jump) != 0) return false;
  jpeg_start_decompress(&jpeg_);
  return true;
}

bool JpegReader::read_row(JSAMPROW row) {
  if (setjmp(errors_.jump) != 0) return false;
  return jpeg_read_scanlines(&jpeg_, &row, 1) == 1;
}

bool JpegReader::finish() {
  if (setjmp(errors_.jump) != 0) return false;
  jpeg_finish_decompress(&jpeg_);
  return true;
}

// In a pixel of the tensor. Inks become colours.
int64_t samples_of(const jpeg_decompress_struct& jpeg) {
  return jpeg.out_color_space == JCS_GRAYSCALE ? 1 : 3;
}

// What libjpeg keeps of an image that comes in several scans: all coefficients, 2 bytes each, of whole blocks.
uint64_t coefficient_bytes(jpeg_decompress_struct& jpeg) {
  if (!jpeg_has_multiple_scans(&jpeg)) return 0;
  uint64_t blocks = 0;
  for (int i = 0; i < jpeg.num_components; ++i) {
    const jpeg_component_info& component = jpeg.comp_info[i];
    const auto rounded = [](uint64_t size, int factor) {
      const auto step = static_cast<uint64_t>(factor);
      return (size + step - 1) / step * step;
    };
    blocks += rounded(component.width_in_blocks, component.h_samp_factor) *
              rounded(component.height_in_blocks, component.v_samp_factor);
  }
  return blocks * sizeof(JBLOCK);
}

// A block of 8 x 8 pixels takes a bit of the file at least, with much room for arithmetic coding. What comes out may
// have more components than the file.
void check_size(jpeg_decompress_struct& jpeg, size_t file_bytes) {
  constexpr uint64_t kMostPixelsPerByte = 64 * 8 * 16;
  const auto samples = static_cast<uint64_t>(std::max<int64_t>(jpeg.num_components, samples_of(jpeg)));
  check_image_size("JPEG", jpeg.image_width, jpeg.image_height, samples, file_bytes * kMostPixelsPerByte);
  const uint64_t decoded = uint64_t{jpeg.image_width} * jpeg.image_height * samples;
  const uint64_t kept = coefficient_bytes(jpeg);
  if (decoded + kept <= static_cast<uint64_t>(kMostImageBytes)) return;
  throw InvalidArgumentError(
      fmt::format("the JPEG image is too large: {} x {} pixels in several scans take {} bytes to decode",
                  jpeg.image_width, jpeg.image_height, decoded + kept));
}

bool is_cmyk(const jpeg_decompress_struct& jpeg) {
  return jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
}

void choose_output(jpeg_decompress_struct& jpeg, int64_t channels, int64_t ratio, bool fancy_upscaling) {
  if (channels == 0) channels = jpeg.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
  if (is_cmyk(jpeg) && channels == 1)
    throw InvalidArgumentError("a CMYK image cannot be decoded as greyscale: decode it as RGB");
  jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE : is_cmyk(jpeg) ? JCS_CMYK : JCS_RGB;
  jpeg.scale_num = 1;
  jpeg.scale_denom = static_cast<unsigned>(ratio);
  jpeg.do_fancy_upsampling = fancy_upscaling ? TRUE : FALSE;
}

// Adobe's files have the inks inverted.
void cmyk_to_rgb(const uint8_t* cmyk, size_t pixels, bool inverted, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i, cmyk += 4) {
    const unsigned black = inverted ? cmyk[3] : 255u - cmyk[3];
    for (size_t c = 0; c < 3; ++c) {
      const unsigned ink = inverted ? cmyk[c] : 255u - cmyk[c];
      *rgb++ = static_cast<uint8_t>(ink * black / 255);
    }
  }
}

// Reads all rows; false for an error.
bool read_rows(JpegReader& reader, Tensor& image) {
  jpeg_decompress_struct& jpeg = reader.jpeg();
  const bool cmyk = jpeg.out_color_space == JCS_CMYK;
  const size_t width = jpeg.output_width, row_bytes = width * static_cast<size_t>(image.shape().dim(2));
  std::vector<uint8_t> inks(cmyk ? 4 * width : 0);
  auto* row = static_cast<uint8_t*>(image.mutable_data());
  while (jpeg.output_scanline < jpeg.output_height) {
    if (!reader.read_row(cmyk ? inks.data() : row)) return false;
    if (cmyk) cmyk_to_rgb(inks.data(), width, jpeg.saw_Adobe_marker != 0, row);
    row += row_bytes;
  }
  return true;
}

}  // namespace

bool is_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xff\xd8\xff");
}

Tensor decode_jpeg(std::string_view bytes, int64_t channels, int64_t ratio, bool fancy_upscaling) {
  if (channels != 0 && channels != 1 && channels != 3)
    throw InvalidArgumentError(
        fmt::format("the channels of a JPEG image must be 0 (as in the file), 1 or 3, not {}", channels));
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
    throw InvalidArgumentError(fmt::format("the ratio that reduces a JPEG image must be 1, 2, 4 or 8, not {}", ratio));
  if (!is_jpeg(bytes)) throw InvalidArgumentError(fmt::format("the {} bytes are not a JPEG image", bytes.size()));
  JpegReader reader(bytes);
  const auto check = [&](bool done) {
    if (!done) throw DataLossError(fmt::format("the JPEG image is damaged: {}", reader.message()));
  };
  check(reader.read_header());
  choose_output(reader.jpeg(), channels, ratio, fancy_upscaling);
  check_size(reader.jpeg(), bytes.size());
  check(reader.start());
  Tensor image(kUInt8, {reader.jpeg().output_height, reader.jpeg().output_width, samples_of(reader.jpeg())});
  check(read_rows(reader, image));
  check(reader.finish());
  return image;
}

}  // namespace longhaul
