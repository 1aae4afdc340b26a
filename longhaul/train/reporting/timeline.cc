#include "longhaul/train/reporting/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

namespace longhaul {
namespace {

// As a JSON string (RFC 8259, section 7).
std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", c);
    } else {
      result += c;
    }
  }
  return result + '"';
}

// Statistics of other programs may lack nanoseconds.
int64_t start_of(const proto::NodeExecStats& node) {
  return node.all_start_nanos() != 0 ? node.all_start_nanos() : node.all_start_micros() * 1000;
}
int64_t duration_of(const proto::NodeExecStats& node) {
  const int64_t nanos = node.all_end_rel_nanos() != 0 ? node.all_end_rel_nanos() : node.all_end_rel_micros() * 1000;
  return std::max<int64_t>(nanos, 0);
}

std::string as_micros(int64_t nanos) {
  return fmt::format("{}.{:03}", nanos / 1000, nanos % 1000);
}

// What a timeline_label "name = Type(input, input)" says.
struct Label {
  std::string_view type = "unknown";
  std::vector<std::string_view> inputs;
};

Label parse_label(std::string_view text) {
  Label label;
  const size_t equals = text.find(" = ");
  const size_t open = text.find('(', equals);
  if (equals == text.npos || open == text.npos || text.back() != ')') return label;
  label.type = text.substr(equals + 3, open - equals - 3);
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    label.inputs.push_back(rest.substr(0, rest.find(", ")));
    rest.remove_prefix(std::min(rest.size(), label.inputs.back().size() + 2));
  }
  return label;
}

class Trace {
 public:
  explicit Trace(const proto::StepStats& stats) {
    for (const auto& device : stats.dev_stats()) {
      for (const auto& node : device.node_stats()) step_start_ = std::min(step_start_, start_of(node));
    }
    for (const auto& device : stats.dev_stats()) add_device(device);
  }

  std::string text() const { return fmt::format("{{\"traceEvents\":[\n{}\n]}}\n", fmt::join(events_, ",\n")); }

 private:
  void add_device(const proto::DeviceStepStats& device) {
    ++process_;
    num_rows_ = 0;
    name_it("process_name", 0, device.device());
    std::map<uint32_t, std::vector<const proto::NodeExecStats*>> threads;
    for (const auto& node : device.node_stats()) threads[node.thread_id()].push_back(&node);
    for (auto& [thread, nodes] : threads) {
      const auto name = device.thread_names().find(thread);
      add_thread(name == device.thread_names().end() ? fmt::format("thread {}", thread) : name->second, nodes);
    }
  }

  // Each operation goes to the first row in which the one before has ended.
  void add_thread(const std::string& name, std::vector<const proto::NodeExecStats*>& nodes) {
    std::stable_sort(nodes.begin(), nodes.end(), [](auto* a, auto* b) { return start_of(*a) < start_of(*b); });
    std::vector<int64_t> row_ends;
    const int first_row = num_rows_;
    for (const proto::NodeExecStats* node : nodes) {
      const int64_t start = start_of(*node);
      auto end = std::find_if(row_ends.begin(), row_ends.end(), [&](int64_t e) { return e <= start; });
      if (end == row_ends.end()) {
        end = row_ends.insert(end, 0);
        name_it("thread_name", num_rows_++, name);
      }
      *end = start + duration_of(*node);
      add_operation(*node, first_row + static_cast<int>(end - row_ends.begin()));
    }
  }

  void name_it(std::string_view what, int row, const std::string& name) {
    events_.push_back(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process_,
                                  row, json_string(name)));
  }

  void add_operation(const proto::NodeExecStats& node, int row) {
    const Label label = parse_label(node.timeline_label());
    std::string args = fmt::format(R"("name":{},"op":{})", json_string(node.node_name()), json_string(label.type));
    for (size_t i = 0; i < label.inputs.size(); ++i) {
      args += fmt::format(R"(,"input{}":{})", i, json_string(label.inputs[i]));
    }
    events_.push_back(
        fmt::format(R"({{"ph":"X","cat":"Op","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                    json_string(label.type), process_, row, as_micros(start_of(node) - step_start_),
                    as_micros(duration_of(node)), args));
  }

  int64_t step_start_ = std::numeric_limits<int64_t>::max();
  int process_ = 0, num_rows_ = 0;
  std::vector<std::string> events_;
};

}  // namespace

std::string generate_chrome_trace_format(const proto::StepStats& step_stats) {
  return Trace(step_stats).text();
}

}  // namespace longhaul
