#include "longhaul/graph/graph_def/graph_files.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>
#include <type_traits>

#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/graph_text.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Message;

constexpr int kDeepest = 100;
constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;  // what a proto can be

void check_size(uint64_t size, uint64_t file_bytes, const std::string& name) {
  const uint64_t most = proto::most_parsed_size(file_bytes);
  if (size <= most) return;
  throw ResourceExhaustedError(fmt::format(
      "{} has {} bytes, but its graph would take more than {} bytes of memory: no genuine graph takes that much", name,
      file_bytes, most));
}

// What a message in memory may be taken for: damaged bytes are not looked at as text, where that would make a puzzling
// error.
bool looks_like_text(std::string_view contents) {
  constexpr size_t kLookedAt = 4096;
  const std::string_view beginning = contents.substr(0, kLookedAt);
  return std::all_of(beginning.begin(), beginning.end(), [](unsigned char c) {
    return (c >= 0x20 && c != 0x7f) || (c >= '\t' && c <= '\r');  // tab, line feed and what lies between
  });
}

// Why bytes cannot be parsed: the first field of the message that cannot be.
std::string damage_of(const Descriptor& type, std::string_view contents) {
  for (WireReader reader(contents); !reader.done();) {
    const size_t at = contents.size() - reader.rest().size();
    uint32_t number, wire_type;
    std::string_view inner;
    if (!reader.take_tag(number, wire_type)) return fmt::format("there is no valid field at byte {}", at);
    const auto* field = type.FindFieldByNumber(static_cast<int>(number));
    const std::string name = field == nullptr ? std::to_string(number) : field->name();
    if (wire_type == WireReader::kBytes ? !reader.take_bytes(inner) : !reader.skip(wire_type)) {
      return fmt::format("its field {}, at byte {}, is truncated", name, at);
    }
    const auto* message = field == nullptr ? nullptr : field->message_type();
    if (message != nullptr && !proto::parsed_size(*message, inner, kDeepest - 1)) {
      return fmt::format("its field {}, at byte {}, is malformed", name, at);
    }
  }
  return "a string in it is not UTF-8";
}

bool parse_binary(std::string_view contents, const std::string& name, Message* message) {
  const uint64_t most = proto::most_parsed_size(contents.size());
  const auto size = proto::parsed_size(*message->GetDescriptor(), contents, kDeepest, most);
  if (!size || (*size > most && looks_like_text(contents))) return false;
  check_size(*size, contents.size(), name);
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(contents.data()),
                                            static_cast<int>(contents.size()));
  in.SetRecursionLimit(kDeepest);
  return message->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

// Returns the first error, or nothing.
std::string parse_text(std::string_view contents, const std::string& name, Message* message) {
  const uint64_t most = proto::most_parsed_size(contents.size());
  check_size(proto::parsed_text_size(*message->GetDescriptor(), contents, most), contents.size(), name);
  return parse_graph_text(contents, name, kDeepest, message);
}

bool has_contents(const proto::GraphDef& graph_def) {
  return graph_def.node_size() > 0 || graph_def.has_versions() || graph_def.has_library();
}
bool has_contents(const proto::MetaGraphDef& meta) {
  return meta.has_graph_def();
}

const char* remedy(const proto::GraphDef&) {
  return "it is a GraphDef, like graph.pbtxt, not a MetaGraphDef: use read_graph_def() and import_graph_def(); the "
         "meta graph of a checkpoint is its .meta file";
}
const char* remedy(const proto::MetaGraphDef&) {
  return "it is a MetaGraphDef, like a checkpoint's .meta file, not a GraphDef: use read_meta_graph() and "
         "import_meta_graph()";
}

// The name of the first field of a message in text.
std::string first_field(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && (std::isspace(static_cast<unsigned char>(text[at])) || text[at] == '#'))
    at = text[at] == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
  size_t end = at;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
  return std::string(text.substr(at, end - at));
}

// What to do with a file of the other kind; empty: it is none.
template <typename T, typename Other>
std::string other_kind(std::string_view contents, const std::string& name) {
  Other other;
  if (looks_like_text(contents)) {
    const std::string field = first_field(contents);
    const bool is_other =
        other.GetDescriptor()->FindFieldByName(field) != nullptr && T::descriptor()->FindFieldByName(field) == nullptr;
    return is_other ? remedy(other) : "";
  }
  return parse_binary(contents, name, &other) && has_contents(other) ? remedy(other) : "";
}

template <typename T>
T parse(std::string_view contents, const std::string& name) {
  using Other = std::conditional_t<std::is_same_v<T, proto::GraphDef>, proto::MetaGraphDef, proto::GraphDef>;
  const google::protobuf::LogSilencer silence;  // what protobuf would print is in our error
  const auto refuse = [&](const std::string& why) {
    throw DataLossError(fmt::format("Cannot parse file {}: {}", name, why));
  };
  if (contents.empty()) refuse("it is empty");
  if (contents.size() > kMostBytes) refuse("it is larger than 2 GiB");
  T message;
  const bool is_binary = parse_binary(contents, name, &message);
  if (is_binary && has_contents(message)) return message;
  if (const std::string other = other_kind<T, Other>(contents, name); !other.empty()) refuse(other);
  if (!is_binary && !looks_like_text(contents)) {
    refuse("it is binary and damaged: " + damage_of(*message.GetDescriptor(), contents));
  }
  const std::string why = looks_like_text(contents) ? parse_text(contents, name, &message) : "";
  if (!why.empty()) refuse("it is not binary, and cannot be parsed as text: " + why);
  if (!has_contents(message)) refuse("it has no graph");
  return message;
}

// What a path may have been meant to be, for messages: of a checkpoint's files only one has a graph.
std::string meta_graph_hint(FileSystem& files, const std::string& path) {
  std::string prefix = path;
  if (path.ends_with(".index")) prefix.resize(path.size() - std::string_view(".index").size());
  if (const size_t data = path.rfind(".data-"); data != std::string::npos) prefix.resize(data);
  const std::string meta = prefix + ".meta";
  return meta != path && files.exists(meta) ? fmt::format(" The meta graph of that checkpoint is {}.", meta) : "";
}

std::string read_existing(FileSystem& files, const std::string& path) {
  if (!files.exists(path)) {
    throw NotFoundError(fmt::format("File {} does not exist.{}", path, meta_graph_hint(files, path)));
  }
  if (files.is_directory(path)) {
    throw InvalidArgumentError(fmt::format("{} is a directory: name the file in it that has the graph", path));
  }
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
  const std::string plain = strip_file_scheme(path);
  try {
    return parse_meta_graph(read_existing(files, plain), path);
  } catch (const DataLossError& error) {
    const std::string hint = meta_graph_hint(files, plain);
    if (hint.empty()) throw;
    throw DataLossError(fmt::format("{}.{}", error.what(), hint));
  }
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
