#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhaul {

// Writes metrics in Prometheus's text format, version 0.0.4.
//
//   MetricsText text;
//   text.family("longhaul_step", "gauge", "The global step.").sample(1200);
class MetricsText {
 public:
  static constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // The samples that follow belong to it. `name` and `type` are the program's own; `help` is escaped.
  MetricsText& family(std::string_view name, std::string_view type, std::string_view help);
  // Values of labels are escaped. A value may be NaN or infinite.
  MetricsText& sample(double value, const Labels& labels = {});

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::string name_;
};

}  // namespace longhaul
