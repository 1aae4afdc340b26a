#include "longhaul/graph/graph_def/graph_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <vector>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

// The text in quotes behind `marker`, or nothing.
std::string_view quoted_behind(std::string_view message, std::string_view marker) {
  const size_t at = message.find(marker);
  if (at == message.npos) return {};
  const std::string_view rest = message.substr(at + marker.size());
  return rest.substr(0, rest.find('"'));
}

// What the parser has to say: the first error, and the fields that it has skipped.
class Findings : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (error.empty()) error = fmt::format("line {}:{}: {}", line + 1, column + 1, message);
  }

  // Message type "longhaul.proto.NodeDef" has no field named "experimental_type".
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string& message) override {
    const std::string_view field = quoted_behind(message, "has no field named \"");
    if (field.empty()) return;
    std::string_view type = quoted_behind(message, "Message type \"");
    type.remove_prefix(std::min(type.size(), type.rfind('.') + 1));
    std::string skipped = fmt::format("{}.{}", type, field.substr(0, kLongest));
    if (std::find(skipped_.begin(), skipped_.end(), skipped) != skipped_.end()) return;
    if (skipped_.size() < kMostNamed) {
      skipped_.push_back(std::move(skipped));
    } else {
      more_ = true;
    }
  }

  void warn(const std::string& name) const {
    if (skipped_.empty()) return;
    log_warning("{}: unknown fields, written by another version of TensorFlow, are skipped: {}{}", name,
                fmt::join(skipped_, ", "), more_ ? " and others" : "");
  }

  std::string error;

 private:
  static constexpr size_t kMostNamed = 20, kLongest = 100;

  std::vector<std::string> skipped_;
  bool more_ = false;
};

}  // namespace

std::string parse_graph_text(std::string_view text, const std::string& name, int deepest,
                             google::protobuf::Message* message) {
  Findings findings;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(deepest);
  parser.RecordErrorsTo(&findings);
  google::protobuf::io::ArrayInputStream in(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&in, message)) return findings.error;
  findings.warn(name);
  return "";
}

}  // namespace longhaul
