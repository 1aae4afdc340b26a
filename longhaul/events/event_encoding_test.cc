#include "longhaul/events/event_encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "longhaul/proto/event.pb.h"

namespace longhaul {
namespace {

// What the encoder must equal: the message serialised by protobuf, in a frame.
std::string record_of(const proto::Event& event) {
  std::string record;
  append_record(record, event.SerializeAsString());
  return record;
}

std::string scalar_record(double wall_time, int64_t step, const std::string& tag, float value) {
  std::string record(kScalarRecordOverhead + tag.size(), '\0');
  record.resize(encode_scalar_record(record.data(), wall_time, step, tag, value));
  return record;
}

TEST(EventEncoding, AScalarHasTheBytesThatProtobufGives) {
  for (int64_t step : {int64_t{0}, int64_t{1}, int64_t{127}, int64_t{128}, int64_t{1} << 40, int64_t{-1}, INT64_MAX})
    for (float value : {0.0f, -0.0f, 1.5f, std::numeric_limits<float>::infinity()})
      for (size_t tag_bytes : {0, 1, 100, 127, 128, 20'000}) {
        proto::Event event;
        event.set_wall_time(1.6e9 + 0.25);
        event.set_step(step);
        auto* scalar = event.mutable_summary()->add_value();
        scalar->set_tag(std::string(tag_bytes, 't'));
        scalar->set_simple_value(value);
        std::string expected = record_of(event);
        if (tag_bytes == 0) continue;  // protobuf leaves an empty tag out
        EXPECT_TRUE(scalar_record(event.wall_time(), step, scalar->tag(), value) == expected)
            << step << ' ' << value << ' ' << tag_bytes;
      }
}

TEST(EventEncoding, AnEventHasTheBytesThatProtobufGives) {
  for (size_t bytes : {0, 5, 127, 128, 1'000'000}) {
    proto::Event event;
    event.set_wall_time(1.5);
    event.set_step(7);
    event.set_graph_def(std::string(bytes, 'g'));
    std::string record = "before";
    append_event_record(record, 1.5, 7, EventField::kGraphDef, event.graph_def());
    EXPECT_TRUE(record == "before" + record_of(event)) << bytes;
  }
}

TEST(EventEncoding, FieldsHaveTheNumbersOfTheMessage) {
  EXPECT_EQ(static_cast<int>(EventField::kFileVersion), proto::Event::kFileVersionFieldNumber);
  EXPECT_EQ(static_cast<int>(EventField::kGraphDef), proto::Event::kGraphDefFieldNumber);
  EXPECT_EQ(static_cast<int>(EventField::kSummary), proto::Event::kSummaryFieldNumber);
  EXPECT_EQ(static_cast<int>(EventField::kLogMessage), proto::Event::kLogMessageFieldNumber);
  EXPECT_EQ(static_cast<int>(EventField::kSessionLog), proto::Event::kSessionLogFieldNumber);
  EXPECT_EQ(static_cast<int>(EventField::kTaggedRunMetadata), proto::Event::kTaggedRunMetadataFieldNumber);
  EXPECT_EQ(static_cast<int>(EventField::kMetaGraphDef), proto::Event::kMetaGraphDefFieldNumber);
}

TEST(EventEncoding, TheLargestScalarFitsItsRoom) {
  const std::string tag(300, 't');
  std::string record = scalar_record(1e300, -1, tag, 1);
  EXPECT_LE(record.size(), kScalarRecordOverhead + tag.size());
}

}  // namespace
}  // namespace longhaul
