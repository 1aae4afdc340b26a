#include "longhaul/checkpoint/directory/element_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "longhaul/checkpoint/bundle/piece_checksum.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

void swap_bytes(DType dtype, char* bytes, size_t size) {
  const bool is_complex = dtype == kComplex64 || dtype == kComplex128;
  const size_t word = dtype_size(dtype) / (is_complex ? 2 : 1);
  for (size_t i = 0; word > 1 && i + word <= size; i += word) std::reverse(bytes + i, bytes + i + word);
}

// The bytes of a piece, read in order.
class PieceStream final : public ElementStream {
 public:
  PieceStream(FileSystem& files, const BundleIndex& index, const StoredPiece& piece, std::string where)
      : file_(files.open(data_path(index.committed(), piece.shard, index.num_shards()))),
        piece_(piece),
        is_swapped_(index.big_endian()),
        where_(std::move(where)),
        buffer_(kPieceBytes) {}

  std::string_view next() override {
    const auto size = static_cast<uint64_t>(piece_.size);
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(kPieceBytes, size - begin_));
    const uint64_t at = static_cast<uint64_t>(piece_.offset) + begin_;
    const size_t count = wanted > 0 ? file_->read(at, buffer_.data(), wanted) : 0;
    const std::string_view bytes(buffer_.data(), count);
    if (count > 0) checksum_.add(begin_, bytes);
    begin_ += count;
    if (count < wanted || wanted == 0) checksum_.check({size, piece_.crc}, where_);
    if (is_swapped_) swap_bytes(static_cast<DType>(piece_.entry.dtype), buffer_.data(), count);
    return bytes;
  }

 private:
  const std::unique_ptr<const ReadableFile> file_;
  const StoredPiece& piece_;
  const bool is_swapped_;
  const std::string where_;
  std::vector<char> buffer_;
  uint64_t begin_ = 0;  // how many bytes were read
  PieceChecksum checksum_;
};

}  // namespace

std::string_view MemoryStream::next() {
  const size_t begin = given_;
  given_ += std::min(kPieceBytes, tensor_.size_bytes() - begin);
  return {static_cast<const char*>(tensor_.data()) + begin, given_ - begin};
}

std::unique_ptr<ElementStream> stream_elements(FileSystem& files, const BundleReader& reader, std::string_view name) {
  const BundleIndex& index = reader.index();
  const StoredPiece& piece = index.piece(name);
  const std::string where = index.where(name, piece);
  if (piece.entry.dtype == kString) throw InvalidArgumentError(where + ": strings are read whole, not as a stream");
  if (!piece.entry.slices.empty()) return std::make_unique<MemoryStream>(reader.read(name));
  PieceReader(files, index).check(piece, where);
  return std::make_unique<PieceStream>(files, index, piece, where);
}

}  // namespace longhaul
