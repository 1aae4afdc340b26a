#include "longhaul/cluster/transport/task_frame.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

TaskFrame a_call() {
  TaskFrame frame;
  frame.call.emplace().set_method("Deliver");
  frame.call->set_to_incarnation(7);
  frame.message = {"header", {Tensor::of<float>({1, 2, 3}), Tensor::scalar("peach")}};
  return frame;
}

TEST(TaskFrame, ComesBack) {
  const TaskFrame frame = read_frame(write_frame(a_call()), "task a");
  ASSERT_TRUE(frame.call.has_value());
  EXPECT_FALSE(frame.reply.has_value());
  EXPECT_EQ(frame.call->method(), "Deliver");
  EXPECT_EQ(frame.call->to_incarnation(), 7u);
  EXPECT_EQ(frame.message.header, "header");
  ASSERT_EQ(frame.message.tensors.size(), 2u);
  EXPECT_TRUE(identical(frame.message.tensors[0], Tensor::of<float>({1, 2, 3})));
  EXPECT_EQ(frame.message.tensors[1].item<std::string>(), "peach");
}

TEST(TaskFrame, ProtobufWritesTheSameBytes) {
  proto::TaskFrame parsed;
  const std::string bytes = joined(write_frame(a_call()));
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.header(), "header");
  EXPECT_EQ(parsed.SerializeAsString(), bytes);
}

// The example of docs/formats/task_messages.md.
TEST(TaskFrame, HasTheBytesOfItsPage) {
  TaskFrame frame;
  frame.reply.emplace().set_incarnation(7);
  frame.message.tensors = {Tensor::of<float>({1, 2})};
  std::string hex;
  for (const unsigned char byte : joined(write_frame(frame))) hex += fmt::format("{:02x}", byte);
  EXPECT_EQ(hex,
            "1209090700000000000000"
            "2212080112041202080222080000803f00000040"
            "2df5d2204c");
}

TEST(TaskFrame, NoChangedBitGoesUnnoticed) {
  const std::string bytes = joined(write_frame(a_call()));
  int damaged = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    try {
      read_frame({{changed, nullptr}}, "task a");
      EXPECT_EQ(bit / 8, bytes.size() - 5) << "bit " << bit << ": only the checksum's own tag may be another one";
    } catch (const DataLossError& error) {
      EXPECT_NE(std::string(error.what()).find("task a: a frame was damaged on its way"), std::string::npos);
      ++damaged;
    } catch (const InvalidArgumentError&) {
      EXPECT_EQ(bit / 8, bytes.size() - 5) << "bit " << bit;
    }
  }
  EXPECT_EQ(damaged, static_cast<int>(8 * (bytes.size() - 1)));
}

// As in a frame whose sender is wrong: that is not the line's fault.
TEST(TaskFrame, WhatWasSentMalformedIsNoDamage) {
  TaskFrame frame = a_call();
  frame.reply.emplace();
  EXPECT_THROW(read_frame(write_frame(frame), "task a"), InvalidArgumentError);
}

TEST(TaskFrame, OneOfAnOlderVersionHasNoChecksum) {
  const std::string bytes = joined(write_frame(a_call()));
  const std::string older = bytes.substr(0, bytes.size() - 5);
  EXPECT_EQ(read_frame({{older, nullptr}}, "task a").message.tensors.size(), 2u);
}

TEST(TaskFrame, TheChecksumIsTheSameInAnyPieces) {
  const std::string bytes = joined(write_frame(a_call()));
  for (size_t size = 1; size < 20; ++size) {
    Slices pieces;
    for (size_t at = 0; at < bytes.size(); at += size)
      pieces.push_back({std::string_view(bytes).substr(at, size), nullptr});
    EXPECT_EQ(read_frame(pieces, "task a").message.tensors.size(), 2u) << size;
  }
}

TEST(TaskFrame, NoPrefixIsBelieved) {
  const std::string bytes = joined(write_frame(a_call()));
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string prefix = bytes.substr(0, size);
    try {
      const TaskFrame frame = read_frame({{prefix, nullptr}}, "task a");
      EXPECT_TRUE(frame.message.tensors.size() < 2 || size == bytes.size() - 5);  // it ends between two fields
    } catch (const InvalidArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find("task a: "), std::string::npos);
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) - 5);
}

TEST(TaskFrame, IsEitherACallOrAReply) {
  TaskFrame frame = a_call();
  frame.reply.emplace();
  EXPECT_THROW(read_frame(write_frame(frame), "task a"), InvalidArgumentError);
  EXPECT_THROW(read_frame({}, "task a"), InvalidArgumentError);
}

TEST(TaskFrame, LimitsAreHeld) {
  const Slices bytes = write_frame(a_call());
  EXPECT_THROW(read_frame(bytes, "task a", {.most_bytes = 10}), ResourceExhaustedError);
  EXPECT_THROW(read_frame(bytes, "task a", {.most_header_bytes = 5}), ResourceExhaustedError);
  EXPECT_THROW(read_frame(bytes, "task a", {.most_tensors = 1}), ResourceExhaustedError);
}

TEST(TaskErrors, ComeBackWithTheirClassAndWhole) {
  const std::string text(1 << 20, 'x');
  const auto error = from_error_body(to_error_body(std::make_exception_ptr(NotFoundError(text))));
  EXPECT_THROW(std::rethrow_exception(error), NotFoundError);
  EXPECT_EQ(message_of(error), text);
  EXPECT_EQ(from_error_body(to_error_body(nullptr)), nullptr);
  proto::ErrorBody unknown;
  unknown.set_code(static_cast<proto::error::Code>(77));
  EXPECT_EQ(code_of(from_error_body(unknown)), Code::kUnknown);
}

TEST(TaskErrors, AConsequenceStaysOne) {
  const auto cause = std::make_exception_ptr(NotFoundError("gone"));
  const auto consequence = std::make_exception_ptr(ConsequenceError(cause));
  EXPECT_FALSE(is_consequence(cause));
  EXPECT_TRUE(is_consequence(consequence));
  EXPECT_TRUE(is_consequence(from_error_body(to_error_body(consequence))));
  EXPECT_TRUE(is_consequence(from_task("/job:ps/replica:0/task:0", consequence)));
  EXPECT_EQ(code_of(consequence), Code::kNotFound);
}

TEST(TaskErrors, TheTaskIsNamedOnce) {  // SS-20
  const auto once = from_task("/job:ps/replica:0/task:0", std::make_exception_ptr(NotFoundError("gone")));
  EXPECT_EQ(message_of(once), "From /job:ps/replica:0/task:0:\ngone");
  EXPECT_EQ(message_of(from_task("/job:worker/replica:0/task:0", once)), message_of(once));
}

TEST(TaskErrors, IncarnationsDiffer) {
  EXPECT_NE(new_incarnation(), new_incarnation());
}

}  // namespace
}  // namespace longhaul
