// docs/compatibility.md has a row for each field of ConfigProto and RunOptions, and what it says is true: each field is
// set once, and taken or refused by its name.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>

#include "longhaul/base/error.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/session/config_proto.h"

namespace longhaul {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::HasSubstr;

struct Row {
  std::string numbers, state;
  bool operator==(const Row&) const = default;
};
using Rows = std::map<std::string, Row>;  // by path

Rows rows_of_page() {
  std::istringstream page(read_file(FileSystem::real(), LONGHAUL_PAGE));
  const std::regex row("- `((ConfigProto|RunOptions)\\.[a-z_.0-9]+)` \\(([0-9.]+)\\): ([a-z ]+)(\\..*)?");
  Rows rows;
  std::smatch found;
  for (std::string line; std::getline(page, line);) {
    if (!std::regex_match(line, found, row)) continue;
    EXPECT_TRUE(rows.emplace(found[1], Row{found[3], found[4]}).second) << line;
  }
  return rows;
}

// A field, with those around it.
using Path = std::vector<const FieldDescriptor*>;

std::string name_of(const std::string& message, const Path& path) {
  std::string name = message;
  for (const FieldDescriptor* field : path) name += "." + field->name();
  return name;
}

std::string numbers_of(const Path& path) {
  std::string numbers;
  for (const FieldDescriptor* field : path) numbers += (numbers.empty() ? "" : ".") + std::to_string(field->number());
  return numbers;
}

// Whether the page has rows for the fields within it.
bool has_fields(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated() && field.name() != "cluster_def";
}

void add_paths(const Descriptor& message, const Path& around, std::vector<Path>* paths) {
  for (int i = 0; i < message.field_count(); ++i) {
    Path path = around;
    path.push_back(message.field(i));
    if (has_fields(*path.back())) {
      add_paths(*path.back()->message_type(), path, paths);
    } else {
      paths->push_back(path);
    }
  }
}

std::vector<Path> paths_of(const Message& message) {
  std::vector<Path> paths;
  add_paths(*message.GetDescriptor(), {}, &paths);
  return paths;
}

// A value that is not the default and means nothing special, in protobuf's text format.
std::string some_value(const FieldDescriptor& field) {
  if (field.is_map()) return "{ key: 'CPU' value: 2 }";
  if (field.name() == "cluster_def") return "{ job { name: 'ps' } }";
  if (field.name() == "device_filters") return ": '/job:ps'";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: return "{}";
    case FieldDescriptor::CPPTYPE_STRING: return ": 'x'";
    case FieldDescriptor::CPPTYPE_BOOL: return ": true";
    case FieldDescriptor::CPPTYPE_ENUM:
      return ": " + field.enum_type()->value(field.enum_type()->value_count() - 1)->name();
    default: return ": 3";
  }
}

// The values of those fields that are taken partly.
const std::map<std::string, std::string> kTakenValues = {
    {"ConfigProto.inter_op_parallelism_threads", ": 1"},
    {"ConfigProto.graph_options.optimizer_options.opt_level", ": L0"},
    {"ConfigProto.graph_options.optimizer_options.global_jit_level", ": OFF"},
    {"ConfigProto.experimental.executor_type", ": 'DEFAULT'"},
    {"RunOptions.inter_op_thread_pool", ": -1"},
};

template <typename Proto>
Proto with_value(const Path& path, const std::string& value) {
  std::string text = path.back()->name() + value;
  for (size_t i = path.size() - 1; i > 0; --i) text = path[i - 1]->name() + " { " + text + " }";
  Proto message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  EXPECT_GT(message.ByteSizeLong(), 0u) << text;
  return message;
}

void take(const proto::ConfigProto& config) {
  session_options_of(config);
}
void take(const proto::RunOptions& options) {
  run_options_of(options);
}

// Whether a session of this process takes the options too.
bool works_in_process(const proto::ConfigProto& config) {
  try {
    check_options_in_process(session_options_of(config));
    return true;
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("SessionOptions::"));
    return false;
  }
}
bool works_in_process(const proto::RunOptions&) {
  return true;
}

// "works", "for servers", or "refused": then the error names the field.
template <typename Proto>
std::string state_with(const std::string& name, const Proto& message) {
  try {
    take(message);
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), HasSubstr(name + " is set"));
    return "refused";
  }
  return works_in_process(message) ? "works" : "for servers";
}

template <typename Proto>
std::string state_of(const std::string& name, const Path& path) {
  // The last of its values may be one that works, as L0 does.
  const auto taken = kTakenValues.find(name);
  if (taken == kTakenValues.end()) return state_with(name, with_value<Proto>(path, some_value(*path.back())));
  EXPECT_EQ(state_with(name, with_value<Proto>(path, taken->second)), "works") << name;
  return "partly";
}

template <typename Proto>
void add_true_rows(const std::string& message, Rows* rows) {
  for (const Path& path : paths_of(Proto())) {
    const std::string name = name_of(message, path);
    rows->emplace(name, Row{numbers_of(path), state_of<Proto>(name, path)});
  }
}

TEST(ConfigFields, AreAllOnThePageWithWhatBecomesOfThem) {
  Rows expected = {{"ConfigProto.graph_options.rewrite_options", {"10.10", "refused"}},
                   {"RunOptions.debug_options", {"6", "refused"}}};
  add_true_rows<proto::ConfigProto>("ConfigProto", &expected);
  add_true_rows<proto::RunOptions>("RunOptions", &expected);
  const Rows page = rows_of_page();
  ASSERT_GT(page.size(), 50u);
  for (const auto& [name, row] : expected) {
    const auto found = page.find(name);
    if (found == page.end()) {
      ADD_FAILURE() << "no row for " << name;
      continue;
    }
    EXPECT_EQ(found->second.numbers, row.numbers) << name;
    EXPECT_EQ(found->second.state, row.state) << name;
  }
  for (const auto& [name, row] : page) EXPECT_TRUE(expected.contains(name)) << name << " is no field";
}

TEST(ConfigFields, ThatAreTakenPartlyRefuseOtherValues) {
  for (const char* text : {"inter_op_parallelism_threads: 2", "experimental { executor_type: 'SINGLE_THREADED' }",
                           "graph_options { optimizer_options { global_jit_level: ON_1 } }"}) {
    proto::ConfigProto config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
    EXPECT_THROW(session_options_of(config), UnimplementedError) << text;
  }
}

}  // namespace
}  // namespace longhaul
