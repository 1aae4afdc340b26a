#include "longhaul/cluster/transport/task_frame.h"

#include <fmt/format.h>

#include "longhaul/proto/serialize.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

using FrameFields = proto::TaskFrame;

// Decodes one frame, field by field.
class FrameReading {
 public:
  FrameReading(const Slices& slices, const std::string& from, const FrameLimits& limits)
      : in_(slices), from_(from), limits_(limits) {}

  TaskFrame read() {
    check_limit("frame", in_.left(), limits_.most_bytes);
    while (in_.left() > 0) take_field();
    if (frame_.call.has_value() == frame_.reply.has_value()) refuse("is not either a call or a reply");
    return std::move(frame_);
  }

 private:
  void take_field() {
    uint32_t field, type;
    if (!in_.take_tag(field, type)) refuse("is damaged");
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

  void check_limit(const char* what, uint64_t size, uint64_t most) const {
    if (size <= most) return;
    throw ResourceExhaustedError(fmt::format("{}: a frame's {} of {} is above the limit, {}", from_, what, size, most));
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
  return out.take();
}

TaskFrame read_frame(const Slices& slices, const std::string& from, const FrameLimits& limits) {
  return FrameReading(slices, from, limits).read();
}

}  // namespace longhaul
