#include "longhaul/cluster/transport/task_frame.h"

#include <fmt/format.h>

#include "longhaul/proto/serialize.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

using FrameFields = proto::TaskFrame;

constexpr size_t kChecksumBytes = 5;  // with its tag

[[noreturn]] void throw_damaged(const std::string& from, uint32_t sum, uint32_t sent) {
  throw DataLossError(
      fmt::format("{}: a frame was damaged on its way: its checksum is {:08x}, but {:08x} was sent. Something "
                  "between the two changes bytes: find it, or use TLS, which notices each of them",
                  from, sum, sent));
}

void check_limit(const std::string& from, const char* what, uint64_t size, uint64_t most) {
  if (size <= most) return;
  throw ResourceExhaustedError(fmt::format("{}: a frame's {} of {} is above the limit, {}", from, what, size, most));
}

// Of a frame that cannot be read: whether that is the line's fault. One without a checksum was sent as it is.
void check_undamaged(const Slices& slices, const std::string& from) {
  SliceReader in(slices, SliceReader::Sum::kChecksum);
  if (in.left() < kChecksumBytes || !in.skip(in.left() - kChecksumBytes)) return;
  const uint32_t sum = in.checksum();
  uint32_t field = 0, type = 0, sent = 0;
  if (!in.take_tag(field, type) || field != FrameFields::kChecksumFieldNumber || type != WireReader::kFixed32) return;
  if (in.take(&sent, sizeof(sent)) && sent != sum) throw_damaged(from, sum, sent);
}

// Decodes one frame, field by field.
class FrameReading {
 public:
  FrameReading(const Slices& slices, const std::string& from, const FrameLimits& limits)
      : in_(slices, SliceReader::Sum::kChecksum), from_(from), limits_(limits) {}

  TaskFrame read() {
    while (in_.left() > 0) take_field();
    if (frame_.call.has_value() == frame_.reply.has_value()) refuse("is not either a call or a reply");
    return std::move(frame_);
  }

 private:
  void take_field() {
    const uint32_t sum = in_.checksum();
    uint32_t field, type;
    if (!in_.take_tag(field, type)) refuse("is damaged");
    if (field == FrameFields::kChecksumFieldNumber && type == WireReader::kFixed32) return take_checksum(sum);
    if (type != WireReader::kBytes || field > FrameFields::kTensorsFieldNumber) {
      if (!in_.skip_field(type)) refuse("is damaged");  // of a later version
      return;
    }
    size_t size;
    if (!in_.take_length(size)) refuse("ends early");
    switch (field) {
      case FrameFields::kCallFieldNumber: return take_envelope(frame_.call, size);
      case FrameFields::kReplyFieldNumber: return take_envelope(frame_.reply, size);
      case FrameFields::kHeaderFieldNumber: return take_header(size);
      default: return take_tensor(size);
    }
  }

  template <typename Envelope>
  void take_envelope(std::optional<Envelope>& out, size_t size) {
    std::string bytes;
    if (out.has_value() || !in_.take(bytes, size)) refuse("has two envelopes, or ends early");
    parse_header(bytes, from_ + ": a frame's envelope", out.emplace());
  }

  void take_header(size_t size) {
    check_limit("message", size, limits_.most_header_bytes);
    if (!frame_.message.header.empty() || !in_.take(frame_.message.header, size)) {
      refuse("has two messages, or ends early");
    }
  }

  void take_tensor(size_t size) {
    std::vector<Tensor>& tensors = frame_.message.tensors;
    check_limit("number of tensors", tensors.size() + 1, limits_.most_tensors);
    tensors.push_back(
        read_tensor(in_, size, fmt::format("{}: tensor {} of a frame", from_, tensors.size()), limits_.make_tensor));
  }

  void take_checksum(uint32_t sum) {
    uint32_t sent = 0;
    if (!in_.take(&sent, sizeof(sent)) || in_.left() > 0) refuse("does not end with its checksum");
    if (sent != sum) throw_damaged(from_, sum, sent);
  }

  void check_limit(const char* what, uint64_t size, uint64_t most) const {
    longhaul::check_limit(from_, what, size, most);
  }
  [[noreturn]] void refuse(const char* why) const {
    throw InvalidArgumentError(fmt::format("{}: a frame {}", from_, why));
  }

  SliceReader in_;
  const std::string& from_;
  const FrameLimits& limits_;
  TaskFrame frame_;
};

}  // namespace

Slices write_frame(const TaskFrame& frame) {
  SliceWriter out;
  if (frame.call) out.counted(FrameFields::kCallFieldNumber, proto::serialize(*frame.call));
  if (frame.reply) out.counted(FrameFields::kReplyFieldNumber, proto::serialize(*frame.reply));
  const std::string& header = frame.message.header;
  if (!header.empty()) out.counted(FrameFields::kHeaderFieldNumber, header);
  for (const Tensor& tensor : frame.message.tensors) write_tensor(out, FrameFields::kTensorsFieldNumber, tensor);
  out.checksum(FrameFields::kChecksumFieldNumber);
  return out.take();
}

TaskFrame read_frame(const Slices& slices, const std::string& from, const FrameLimits& limits) {
  check_limit(from, "frame", total_bytes(slices), limits.most_bytes);
  try {
    return FrameReading(slices, from, limits).read();
  } catch (const DataLossError&) {
    throw;
  } catch (const Error&) {
    check_undamaged(slices, from);
    throw;
  }
}

}  // namespace longhaul
