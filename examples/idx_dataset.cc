#include "examples/idx_dataset.h"

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <utility>

namespace longhaul::examples {
namespace {

constexpr char kRemedy[] = "run \"apt-get install dataset-fashion-mnist\", or name its directory with --data_dir=...";
constexpr size_t kChunkBytes = 256 << 10;
constexpr uint64_t kMaxDeflateRatio = 1032;  // a deflate stream is never smaller than 1/1032 of what it holds
constexpr uint32_t kUnsignedBytes = 0x08;    // IDX's number for this type of element

[[noreturn]] void throw_damaged(const std::string& path, const std::string& what) {
  throw DataLossError(fmt::format("{}: {}; {}", path, what, kRemedy));
}

// The contents of a gzip file of one member, from its start to its end.
class GzipReader {
 public:
  GzipReader(FileSystem& files, std::string path)
      : path_(std::move(path)), file_(open(files, path_)), state_(new inflate_state) {
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_GZIP;
  }

  const std::string& path() const { return path_; }
  uint64_t max_contents_bytes() const { return file_->size() * kMaxDeflateRatio; }

  void read(uint8_t* out, uint64_t count) {
    const uint64_t got = read_some(out, count);
    if (got != count)
      throw_damaged(path_, fmt::format("ends after {} of {} bytes", position_, position_ - got + count));
  }

  // The checksum stands at the end, so nothing read before is trusted until this has returned.
  void expect_end() {
    uint8_t more;
    if (read_some(&more, 1) != 0) throw_damaged(path_, fmt::format("has more than its {} bytes", position_ - 1));
  }

 private:
  static std::unique_ptr<ReadableFile> open(FileSystem& files, const std::string& path) {
    try {
      return files.open(path);
    } catch (const Error& error) {
      throw_error(error.code(), fmt::format("{}; {}", error.what(), kRemedy));
    }
  }

  // Up to `count` bytes: fewer only at the member's end.
  uint64_t read_some(uint8_t* out, uint64_t count) {
    uint64_t done = 0;
    while (done < count && state_->block_state != ISAL_BLOCK_FINISH) {
      refill();
      const auto room = static_cast<uint32_t>(std::min<uint64_t>(count - done, 1 << 30));
      state_->next_out = out + done;
      state_->avail_out = room;
      const int status = isal_inflate(state_.get());
      if (status != ISAL_DECOMP_OK) throw_damaged(path_, fmt::format("is damaged (inflate: {})", status));
      done += room - state_->avail_out;
    }
    position_ += done;
    return done;
  }

  void refill() {
    if (state_->avail_in > 0) return;
    const size_t got = file_->read(offset_, reinterpret_cast<char*>(chunk_.get()), kChunkBytes);
    if (got == 0 && stalled_) throw_damaged(path_, fmt::format("is truncated at {} bytes", offset_));
    stalled_ = got == 0;  // one more round may still bring out what the state holds
    offset_ += got;
    state_->next_in = chunk_.get();
    state_->avail_in = static_cast<uint32_t>(got);
  }

  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  const std::unique_ptr<inflate_state> state_;
  const std::unique_ptr<uint8_t[]> chunk_ = std::make_unique_for_overwrite<uint8_t[]>(kChunkBytes);
  uint64_t offset_ = 0;    // in the file
  uint64_t position_ = 0;  // in the contents
  bool stalled_ = false;
};

uint32_t read_big_endian(GzipReader& reader) {
  uint8_t bytes[4];
  reader.read(bytes, 4);
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

std::vector<int64_t> read_sizes(GzipReader& reader, uint32_t dimensions) {
  const uint32_t magic = read_big_endian(reader);
  const uint32_t wanted = kUnsignedBytes << 8 | dimensions;
  if (magic != wanted) {
    throw_damaged(reader.path(),
                  fmt::format("starts with {:#010x}, want {:#010x}: not an IDX file of this kind", magic, wanted));
  }
  std::vector<int64_t> sizes(dimensions);
  for (int64_t& size : sizes) size = read_big_endian(reader);
  return sizes;
}

void read_pixels(GzipReader reader, const ImageFormat& format, ImageDataset& data) {
  const std::vector<int64_t> sizes = read_sizes(reader, 3);
  if (sizes[1] != format.rows || sizes[2] != format.columns) {
    throw_damaged(reader.path(),
                  fmt::format("has images of {} x {}, want {} x {}", sizes[1], sizes[2], format.rows, format.columns));
  }
  data.count = sizes[0];
  data.rows = sizes[1];
  data.columns = sizes[2];
  const auto bytes = static_cast<uint64_t>(data.count * data.pixels_per_image());
  if (data.count == 0 || bytes > reader.max_contents_bytes()) {
    throw_damaged(reader.path(), fmt::format("claims {} images, which is impossible for its size", data.count));
  }
  data.pixels = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  reader.read(data.pixels.get(), bytes);
  reader.expect_end();
}

void read_labels(GzipReader reader, const ImageFormat& format, ImageDataset& data) {
  const int64_t count = read_sizes(reader, 1)[0];
  if (count != data.count) {
    throw_damaged(reader.path(), fmt::format("has {} labels for {} images", count, data.count));
  }
  data.labels.resize(static_cast<size_t>(count));
  reader.read(data.labels.data(), data.labels.size());
  reader.expect_end();
  const int largest = *std::max_element(data.labels.begin(), data.labels.end());
  if (largest >= format.classes) {
    throw_damaged(reader.path(), fmt::format("has a label {}, want less than {}", largest, format.classes));
  }
}

}  // namespace

ImageDataset load_images(const std::string& directory, const std::string& part, const ImageFormat& format,
                         FileSystem& files) {
  ImageDataset data;
  read_pixels(GzipReader(files, join_path(directory, part + "-images-idx3-ubyte.gz")), format, data);
  read_labels(GzipReader(files, join_path(directory, part + "-labels-idx1-ubyte.gz")), format, data);
  return data;
}

std::future<ImageDataset> load_images_in_background(const std::string& directory, const std::string& part,
                                                    ImageFormat format) {
  return std::async(std::launch::async, [=] { return load_images(directory, part, format); });
}

}  // namespace longhaul::examples
