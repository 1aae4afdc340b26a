#include "longhaul/train/reporting/timeline.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <map>

namespace longhaul {
namespace {

using JsonObject = google::protobuf::Map<std::string, google::protobuf::Value>;

// Statistics of a step, and the events of its trace as protobuf's own parser of JSON sees them.
class TimelineTest : public ::testing::Test {
 protected:
  proto::DeviceStepStats* add_device(const std::string& name) {
    proto::DeviceStepStats* device = stats_.add_dev_stats();
    device->set_device(name);
    return device;
  }

  static proto::NodeExecStats* add_node(proto::DeviceStepStats* device, const std::string& name, int64_t start_nanos,
                                        int64_t nanos, uint32_t thread = 7) {
    proto::NodeExecStats* node = device->add_node_stats();
    node->set_node_name(name);
    node->set_timeline_label(name + " = NoOp()");
    node->set_thread_id(thread);
    node->set_all_start_nanos(start_nanos);
    node->set_all_end_rel_nanos(nanos);
    return node;
  }

  // All of one phase: "X" are operations, "M" names of processes and threads.
  std::vector<JsonObject> events(const std::string& phase) const {
    google::protobuf::Struct trace;
    const auto status = google::protobuf::util::JsonStringToMessage(generate_chrome_trace_format(stats_), &trace);
    EXPECT_TRUE(status.ok()) << status.ToString();
    std::vector<JsonObject> found;
    for (const auto& event : trace.fields().at("traceEvents").list_value().values()) {
      const JsonObject& fields = event.struct_value().fields();
      if (fields.at("ph").string_value() == phase) found.push_back(fields);
    }
    return found;
  }

  static const JsonObject& args(const JsonObject& event) { return event.at("args").struct_value().fields(); }

  // The row of each operation, by its name.
  std::map<std::string, double> rows() const {
    std::map<std::string, double> rows;
    for (const JsonObject& event : events("X"))
      rows[args(event).at("name").string_value()] = event.at("tid").number_value();
    return rows;
  }

  proto::StepStats stats_;
};

TEST_F(TimelineTest, AnOperationIsACompleteEventWithItsTypeAndInputs) {
  proto::DeviceStepStats* device = add_device("/job:localhost/replica:0/task:0/device:CPU:0");
  add_node(device, "before", 1'600'000'000'000'001'000, 0);
  add_node(device, "dense/mul", 1'600'000'000'000'003'500, 12'345)
      ->set_timeline_label("dense/mul = aten::mul.Tensor(x:1, dense/kernel/read, ^init)");
  const JsonObject event = events("X").at(1);
  EXPECT_EQ(event.at("name").string_value(), "aten::mul.Tensor");
  EXPECT_EQ(event.at("ts").number_value(), 2.5) << "microseconds since the first operation";
  EXPECT_EQ(event.at("dur").number_value(), 12.345);
  const JsonObject& details = args(event);
  EXPECT_EQ(details.size(), 5u);
  EXPECT_EQ(details.at("name").string_value(), "dense/mul");
  EXPECT_EQ(details.at("op").string_value(), "aten::mul.Tensor");
  EXPECT_EQ(details.at("input0").string_value(), "x:1");
  EXPECT_EQ(details.at("input1").string_value(), "dense/kernel/read");
  EXPECT_EQ(details.at("input2").string_value(), "^init");
}

TEST_F(TimelineTest, DevicesAreProcessesAndThreadsAreRows) {
  proto::DeviceStepStats* cpu = add_device("CPU:0");
  (*cpu->mutable_thread_names())[7] = "main";
  add_node(cpu, "a", 100, 10);
  add_node(cpu, "b", 105, 10, /*thread=*/8);
  add_node(add_device("CPU:1"), "c", 100, 10);
  std::map<std::string, std::vector<std::string>> names;
  for (const JsonObject& event : events("M")) {
    names[event.at("name").string_value()].push_back(args(event).at("name").string_value());
  }
  EXPECT_EQ(names["process_name"], (std::vector<std::string>{"CPU:0", "CPU:1"}));
  EXPECT_EQ(names["thread_name"], (std::vector<std::string>{"main", "thread 8", "thread 7"}));
  const auto operations = events("X");
  EXPECT_EQ(operations.at(0).at("pid").number_value(), operations.at(1).at("pid").number_value());
  EXPECT_NE(operations.at(0).at("pid").number_value(), operations.at(2).at("pid").number_value());
  EXPECT_NE(rows()["a"], rows()["b"]);
}

TEST_F(TimelineTest, OperationsThatOverlapOnAThreadHaveRowsOfTheirOwn) {
  proto::DeviceStepStats* device = add_device("GPU:0");
  add_node(device, "second", 150, 100);
  add_node(device, "first", 100, 100);
  add_node(device, "right after first", 200, 10);
  add_node(device, "third", 205, 10);
  auto row_of = rows();
  EXPECT_NE(row_of["first"], row_of["second"]);
  EXPECT_EQ(row_of["first"], row_of["right after first"]);
  EXPECT_NE(row_of["third"], row_of["right after first"]);
  EXPECT_NE(row_of["third"], row_of["second"]);
}

TEST_F(TimelineTest, MicrosecondsAreEnough) {
  proto::DeviceStepStats* device = add_device("CPU:0");
  for (int i = 0; i < 2; ++i) {
    proto::NodeExecStats* node = add_node(device, "a", 0, 0);
    node->set_all_start_micros(1'600'000'000'000'000 + 5 * i);
    node->set_all_end_rel_micros(3);
  }
  EXPECT_EQ(events("X").at(1).at("ts").number_value(), 5);
  EXPECT_EQ(events("X").at(1).at("dur").number_value(), 3);
}

TEST_F(TimelineTest, AnyNameGivesValidJson) {
  const std::string name = "q\"uote \\ back\nline \x01 caf\xc3\xa9";
  proto::DeviceStepStats* device = add_device(name);
  add_node(device, name, 1, 1);
  EXPECT_EQ(args(events("X").at(0)).at("name").string_value(), name);
  EXPECT_EQ(args(events("M").at(0)).at("name").string_value(), name);
  EXPECT_NE(generate_chrome_trace_format(stats_).find("back\\u000aline \\u0001 caf"), std::string::npos)
      << "the parser here lets control characters pass, others do not";
}

TEST_F(TimelineTest, AStrangeLabelOrDurationDoesNotSpoilTheTrace) {
  proto::DeviceStepStats* device = add_device("CPU:0");
  for (const char* label : {"", "x", "x = ", "x = y", "x = y(", " = (", ")", "x = y(a,"}) {
    add_node(device, "x", 1, -5)->set_timeline_label(label);
  }
  const auto operations = events("X");
  ASSERT_EQ(operations.size(), 8u);
  for (const JsonObject& event : operations) {
    EXPECT_EQ(event.at("name").string_value(), "unknown");
    EXPECT_EQ(event.at("dur").number_value(), 0);
  }
}

TEST_F(TimelineTest, AStepWithoutOperationsIsAnEmptyTrace) {
  EXPECT_TRUE(events("X").empty());
}

}  // namespace
}  // namespace longhaul
