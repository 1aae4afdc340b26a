#include "longhaul/events/event_encoding.h"

#include <bit>
#include <cstring>

namespace longhaul {

namespace {

// Field numbers and wire types, as one byte.
constexpr char kWallTime = 1 << 3 | 1;
constexpr char kStep = 2 << 3 | 0;
constexpr char kSummary = 5 << 3 | 2;
constexpr char kSummaryValue = 1 << 3 | 2;
constexpr char kValueTag = 1 << 3 | 2;
constexpr char kValueSimple = 2 << 3 | 5;

constexpr size_t kMaxEventHead = 9 + 11 + 11;

char* put_varint(char* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<char>(value);
  return out;
}

template <typename Number>
char* put_fixed(char* out, Number value) {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

constexpr size_t varint_size(uint64_t value) {
  return (std::bit_width(value | 1) + 6) / 7;
}

char* put_time_and_step(char* out, double wall_time, int64_t step) {
  if (wall_time != 0) {
    *out++ = kWallTime;
    out = put_fixed(out, wall_time);
  }
  if (step != 0) {
    *out++ = kStep;
    out = put_varint(out, static_cast<uint64_t>(step));
  }
  return out;
}

char* put_length(char* out, char field, uint64_t length) {
  *out++ = field;
  return put_varint(out, length);
}

}  // namespace

void append_event_record(std::string& out, double wall_time, int64_t step, EventField field, std::string_view content) {
  char head[kMaxEventHead];
  char* end = put_time_and_step(head, wall_time, step);
  end = put_length(end, static_cast<char>(static_cast<int>(field) << 3 | 2), content.size());
  size_t head_bytes = end - head;

  size_t begin = out.size();
  out.reserve(begin + kRecordHeaderBytes + head_bytes + content.size() + kRecordFooterBytes);
  out.append(kRecordHeaderBytes, '\0').append(head, head_bytes).append(content).append(kRecordFooterBytes, '\0');
  frame_record(out.data() + begin, head_bytes + content.size());
}

size_t encode_scalar_record(char* out, double wall_time, int64_t step, std::string_view tag, float value) {
  const size_t value_bytes = 1 + varint_size(tag.size()) + tag.size() + 1 + sizeof(value);
  const size_t summary_bytes = 1 + varint_size(value_bytes) + value_bytes;
  char* const payload = out + kRecordHeaderBytes;
  char* end = put_time_and_step(payload, wall_time, step);
  end = put_length(end, kSummary, summary_bytes);
  end = put_length(end, kSummaryValue, value_bytes);
  end = put_length(end, kValueTag, tag.size());
  std::memcpy(end, tag.data(), tag.size());
  end += tag.size();
  *end++ = kValueSimple;
  end = put_fixed(end, value);
  frame_record(out, end - payload);
  return kRecordHeaderBytes + (end - payload) + kRecordFooterBytes;
}

}  // namespace longhaul
