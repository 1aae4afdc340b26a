#include "longhaul/cluster/wire/run_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/cluster/wire/wire_fixture.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

proto::master::RunStepRequest request_with_feeds() {
  auto request = WireClient::run_request("0123456789abcdef", {"y:0"}, {"train"},
                                         {{"x:0", Tensor::of<float>({1, 2})},
                                          {"names:0", Tensor::of<std::string>({"a", "bc"})},
                                          {"empty:0", Tensor(kFloat, {0, 3})}});
  auto* feed = request.add_feed();  // as a program writes it by hand
  feed->set_name("n:0");
  feed->mutable_tensor()->set_dtype(proto::DT_INT32);
  feed->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(3);
  feed->mutable_tensor()->add_int_val(7);
  feed = request.add_feed();  // as TensorFlow's client sends strings
  feed->set_name("s:0");
  feed->mutable_tensor()->set_dtype(proto::DT_STRING);
  feed->mutable_tensor()->mutable_tensor_shape();
  feed->mutable_tensor()->set_tensor_content("\2ab");
  request.mutable_options()->set_timeout_in_ms(1500);
  request.set_request_id(-5);
  return request;
}

TEST(RunMessages, AllFormsOfFeedsAreRead) {
  const RunStepCall call = read_run_step(to_slices(request_with_feeds()));
  EXPECT_EQ(call.message.session_handle(), "0123456789abcdef");
  EXPECT_EQ(call.message.options().timeout_in_ms(), 1500);
  EXPECT_EQ(call.message.request_id(), -5);
  EXPECT_EQ(call.message.feed_size(), 0);
  EXPECT_THAT(call.feeds, ElementsAre("x:0", "names:0", "empty:0", "n:0", "s:0"));
  ASSERT_EQ(call.values.size(), 5u);
  EXPECT_TRUE(identical(call.values[0], Tensor::of<float>({1, 2})));
  EXPECT_TRUE(identical(call.values[1], Tensor::of<std::string>({"a", "bc"})));
  EXPECT_TRUE(identical(call.values[2], Tensor(kFloat, {0, 3})));
  EXPECT_TRUE(identical(call.values[3], Tensor::of<int32_t>({7, 7, 7})));
  EXPECT_TRUE(identical(call.values[4], Tensor::scalar("ab")));
}

TEST(RunMessages, ARequestInPiecesIsTheSame) {
  const std::string bytes = request_with_feeds().SerializeAsString();
  Slices pieces;
  for (size_t at = 0; at < bytes.size(); at += 3) pieces.push_back({std::string_view(bytes).substr(at, 3), nullptr});
  const RunStepCall call = read_run_step(pieces);
  ASSERT_EQ(call.values.size(), 5u);
  EXPECT_TRUE(identical(call.values[0], Tensor::of<float>({1, 2})));
}

// Whatever comes is read or refused.
TEST(RunMessages, DamagedRequestsAreRefused) {
  const std::string bytes = request_with_feeds().SerializeAsString();
  int refused = 0;
  const auto read = [&](const std::string& damaged) {
    try {
      const Slices request{Slice{damaged, nullptr}};
      read_run_step(request);
      read_run_callable(request);
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t size = 0; size < bytes.size(); ++size) read(bytes.substr(0, size));
  EXPECT_GT(refused, static_cast<int>(bytes.size()) / 2);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      read(damaged);
    }
  }
}

TEST(RunMessages, AFeedWithoutNameOrTensorIsRefused) {
  proto::master::RunStepRequest request;
  request.add_feed()->set_name("x:0");
  EXPECT_THAT(refusal_of([&] { read_run_step(to_slices(request)); }), HasSubstr("no name or no tensor"));
}

TEST(RunMessages, OneValueStandsForSoManyElementsOnly) {
  proto::master::RunCallableRequest request;
  request.add_feed()->set_dtype(proto::DT_FLOAT);
  request.mutable_feed(0)->add_float_val(1);
  request.mutable_feed(0)->mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 26);
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { read_run_callable(to_slices(request)); }),
              HasSubstr("RunCallable: feed 0: one value stands for more elements"));
}

TEST(RunMessages, AnswersAreTensorFlowsMessages) {
  const Tensor large = Tensor::of(std::vector<float>(1000, 0.5f));
  proto::RunMetadata metadata;
  metadata.add_partition_graphs()->add_node()->set_name("y");
  const Slices slices = write_run_step({"y:0", "z"}, {large, Tensor::of<std::string>({"text"})}, &metadata);
  const auto response = WireClient::parsed<proto::master::RunStepResponse>(joined(slices));
  ASSERT_EQ(response.tensor_size(), 2);
  EXPECT_EQ(response.tensor(1).name(), "z");
  EXPECT_TRUE(identical(from_proto(response.tensor(0).tensor()), large));
  EXPECT_TRUE(identical(from_proto(response.tensor(1).tensor()), Tensor::of<std::string>({"text"})));
  EXPECT_EQ(response.metadata().partition_graphs(0).node(0).name(), "y");
  const bool shares =
      std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) { return slice.bytes.data() == large.data(); });
  EXPECT_TRUE(shares) << "the values were copied";

  const auto callable = WireClient::parsed<proto::master::RunCallableResponse>(
      joined(write_run_callable({large, Tensor::scalar(7.f)}, nullptr)));
  ASSERT_EQ(callable.fetch_size(), 2);
  EXPECT_TRUE(identical(from_proto(callable.fetch(1)), Tensor::scalar(7.f)));
}

TEST(RunMessages, AFetchWithoutAValueIsNamed) {
  EXPECT_THAT(refusal_of([] { write_run_step({"train"}, {Tensor()}, nullptr); }), HasSubstr("train has no value"));
}

}  // namespace
}  // namespace longhaul
