#include "longhaul/status/metrics_text.h"

#include <fmt/format.h>

#include <cmath>

namespace longhaul {
namespace {

void append_escaped(std::string& text, std::string_view value, bool is_label) {
  for (const char c : value) {
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '"' && is_label) {
      text += "\\\"";
    } else {
      text += c;
    }
  }
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

MetricsText& MetricsText::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} ", name);
  append_escaped(text_, help, /*is_label=*/false);
  text_ += fmt::format("\n# TYPE {} {}\n", name, type);
  return *this;
}

MetricsText& MetricsText::sample(double value, const Labels& labels) {
  text_ += name_;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += fmt::format("{}{}=\"", i == 0 ? "{" : ",", labels[i].first);
    append_escaped(text_, labels[i].second, /*is_label=*/true);
    text_ += '"';
  }
  if (!labels.empty()) text_ += '}';
  text_ += fmt::format(" {}\n", value_text(value));
  return *this;
}

}  // namespace longhaul
