#include "longhaul/graph/graph_files.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include "longhaul/graph/field_count.h"
#include "longhaul/graph/graph_def.h"
#include "longhaul/io/directory_lock.h"
#include "longhaul/proto/serialize.h"

namespace longhaul {
namespace {

using google::protobuf::Message;

constexpr int kDeepest = 100;
constexpr uint64_t kMostFields = uint64_t{1} << 25;
constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;  // what a proto can be

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text.empty()) text = fmt::format("line {}:{}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  std::string text;
};

void check_field_count(uint64_t fields, const std::string& name) {
  if (fields > kMostFields) {
    throw ResourceExhaustedError(fmt::format("{} has more than {} fields", name, kMostFields));
  }
}

bool parse_binary(std::string_view contents, const std::string& name, Message* message) {
  const auto fields = count_fields(*message->GetDescriptor(), contents, kDeepest, kMostFields);
  if (!fields) return false;
  check_field_count(*fields, name);
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(contents.data()),
                                            static_cast<int>(contents.size()));
  in.SetRecursionLimit(kDeepest);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

// Returns the first error, or nothing.
std::string parse_text(std::string_view contents, const std::string& name, Message* message) {
  check_field_count(count_text_fields(contents), name);
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.SetRecursionLimit(kDeepest);
  parser.RecordErrorsTo(&error);
  google::protobuf::io::ArrayInputStream in(contents.data(), static_cast<int>(contents.size()));
  return parser.Parse(&in, message) ? "" : error.text;
}

bool has_contents(const proto::GraphDef& graph_def) {
  return graph_def.node_size() > 0 || graph_def.has_versions() || graph_def.has_library();
}
bool has_contents(const proto::MetaGraphDef& meta) {
  return meta.has_graph_def();
}

template <typename T>
T parse(std::string_view contents, const std::string& name) {
  const google::protobuf::LogSilencer silence;  // what protobuf would print is in our error
  const auto refuse = [&](const std::string& why) {
    throw DataLossError(fmt::format("Cannot parse file {}: {}", name, why));
  };
  if (contents.empty()) refuse("it is empty");
  if (contents.size() > kMostBytes) refuse("it is larger than 2 GiB");
  T message;
  if (parse_binary(contents, name, &message) && has_contents(message)) return message;
  const std::string why = parse_text(contents, name, &message);
  if (!why.empty()) refuse("it is not binary, and as text: " + why);
  if (!has_contents(message)) refuse("there is no graph in it");
  return message;
}

std::string read_existing(FileSystem& files, const std::string& path) {
  if (!files.exists(path)) throw NotFoundError(fmt::format("File {} does not exist.", path));
  return read_file(files, path, kMostBytes);
}

std::string to_text(const Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

void write(const Message& message, const std::string& path, const WriteGraphOptions& options) {
  check_directory_owner(*options.files, path);
  options.files->make_directories(directory_name(path));
  write_file_atomically(*options.files, path, options.as_text ? to_text(message) : proto::serialize(message));
}

}  // namespace

proto::GraphDef parse_graph_def(std::string_view contents, const std::string& name) {
  return parse<proto::GraphDef>(contents, name);
}

proto::MetaGraphDef parse_meta_graph(std::string_view contents, const std::string& name) {
  return parse<proto::MetaGraphDef>(contents, name);
}

proto::GraphDef read_graph_def(FileSystem& files, const std::string& path) {
  return parse_graph_def(read_existing(files, strip_file_scheme(path)), path);
}

proto::MetaGraphDef read_meta_graph(FileSystem& files, const std::string& path) {
  return parse_meta_graph(read_existing(files, strip_file_scheme(path)), path);
}

std::string write_graph(const proto::GraphDef& graph_def, const std::string& directory, const std::string& name,
                        const WriteGraphOptions& options) {
  const std::string path = join_path(strip_file_scheme(directory), name);
  write(graph_def, path, options);
  return path;
}

std::string write_graph(const Graph& graph, const std::string& directory, const std::string& name,
                        const WriteGraphOptions& options) {
  return write_graph(to_graph_def(graph), directory, name, options);
}

void write_meta_graph(const proto::MetaGraphDef& meta, const std::string& path, const WriteGraphOptions& options) {
  write(meta, strip_file_scheme(path), options);
}

}  // namespace longhaul
