#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "longhaul/io/records/record.h"

namespace longhaul {

// Encodes events as records without protobuf: the same bytes as proto::Event, at less cost. docs/formats/event_file.md

// The fields of proto::Event with the content; all are byte strings on the wire.
enum class EventField : uint8_t {
  kFileVersion = 3,
  kGraphDef = 4,
  kSummary = 5,
  kLogMessage = 6,
  kSessionLog = 7,
  kTaggedRunMetadata = 8,
  kMetaGraphDef = 9,
};

inline constexpr std::string_view kFileVersion = "brain.Event:2";

// Appends the record of an event.
void append_event_record(std::string& out, double wall_time, int64_t step, EventField field, std::string_view content);

// The most bytes that the record of a scalar takes in addition to its tag.
inline constexpr size_t kScalarRecordOverhead = kRecordHeaderBytes + 9 + 11 + 3 * 11 + 5 + kRecordFooterBytes;

// Writes the record of an event with one scalar to `out`, which must have room for kScalarRecordOverhead + tag.size()
// bytes. Returns the record's size.
size_t encode_scalar_record(char* out, double wall_time, int64_t step, std::string_view tag, float value);

}  // namespace longhaul
