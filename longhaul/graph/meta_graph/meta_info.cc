#include "longhaul/graph/meta_graph/meta_info.h"

#include <algorithm>

#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

constexpr uint32_t kMetaInfoDef = 1, kAnyInfo = 3;  // of MetaGraphDef and of MetaInfoDef
constexpr uint64_t kMostAnyInfo = 64 * 1024;
constexpr int64_t kMostFields = int64_t{1} << 20;

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The fields of a message in a file, of which only the tags and the lengths are read.
class FileFields {
 public:
  FileFields(const ReadableFile& file, const Range& message) : file_(file), at_(message.begin), end_(message.end) {}

  // The contents of the next field of that number that has a length; nothing: there is none, or it cannot be found.
  std::optional<Range> next(uint32_t number) {
    for (int64_t passed = 0; at_ < end_ && passed < kMostFields; ++passed) {
      uint32_t field, type;
      const std::optional<Range> contents = take_field(field, type);
      if (!contents || contents->end > end_) return std::nullopt;
      at_ = contents->end;
      if (field == number && type == WireReader::kBytes) return contents;
    }
    return std::nullopt;
  }

 private:
  std::optional<Range> take_field(uint32_t& field, uint32_t& type) {
    const std::string_view head = bytes_at(at_);
    WireReader reader(head);
    if (!reader.take_tag(field, type)) return std::nullopt;
    uint64_t length = 0;
    if (type == WireReader::kBytes ? !reader.take_varint(length) : !reader.skip(type)) return std::nullopt;
    const uint64_t begin = at_ + (head.size() - reader.rest().size());
    if (length > end_ - std::min(begin, end_)) return std::nullopt;
    return Range{begin, begin + length};
  }

  // Enough of them for a tag and a length, but at the end.
  std::string_view bytes_at(uint64_t offset) {
    constexpr size_t kLongestHead = 20, kPiece = 4096;
    const bool held = offset >= held_from_ && offset + kLongestHead <= held_from_ + buffer_.size();
    if (!held) {
      buffer_.resize(kPiece);
      buffer_.resize(file_.read(offset, buffer_.data(), buffer_.size()));
      held_from_ = offset;
    }
    return std::string_view(buffer_).substr(offset - held_from_).substr(0, end_ - offset);
  }

  const ReadableFile& file_;
  uint64_t at_;
  const uint64_t end_;
  std::string buffer_;
  uint64_t held_from_ = 0;
};

}  // namespace

std::optional<google::protobuf::Any> read_any_info(FileSystem& files, const std::string& path) {
  if (!files.exists(path)) return std::nullopt;
  const auto file = files.open(path);
  const auto info = FileFields(*file, {0, file->size()}).next(kMetaInfoDef);
  if (!info) return std::nullopt;
  const auto found = FileFields(*file, *info).next(kAnyInfo);
  if (!found || found->end - found->begin > kMostAnyInfo) return std::nullopt;
  std::string bytes(found->end - found->begin, '\0');
  google::protobuf::Any any;
  if (file->read(found->begin, bytes.data(), bytes.size()) != bytes.size() || !any.ParseFromString(bytes)) {
    return std::nullopt;
  }
  return any;
}

}  // namespace longhaul
