#include "longhaul/console/text/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "longhaul/console/text/shown_text.h"

namespace longhaul::console {
namespace {

constexpr size_t kUsualColumns = 80;
constexpr size_t kFewestColumns = 8;  // of a bar or a plot

size_t columns_in(const Terminal& terminal) {
  return terminal.columns > 0 ? std::min<size_t>(terminal.columns, 120) : kUsualColumns;
}

size_t left_of(const Terminal& terminal, size_t taken) {
  const size_t all = columns_in(terminal);
  return all > taken + kFewestColumns ? all - taken : kFewestColumns;
}

// The place of a value between two limits, of `count` places.
size_t place_of(double value, double low, double high, size_t count) {
  if (!(high > low)) return 0;
  const double scale = std::isfinite(high - low) ? 1 : 0.5;  // by halves where the range has no double
  const double share = (scale * value - scale * low) / (scale * high - scale * low);
  return std::min(count - 1, static_cast<size_t>(std::max(0.0, share * static_cast<double>(count))));
}

// The lowest and the highest value in each column of a plot.
struct Span {
  double low = INFINITY, high = -INFINITY;
};

}  // namespace

std::string number_text(double value) {
  return fmt::format("{:.6g}", value);
}

std::string bar_text(double share, size_t columns, const Terminal& terminal) {
  share = std::clamp(std::isnan(share) ? 0.0 : share, 0.0, 1.0);
  const double wanted = share * static_cast<double>(columns);
  if (!terminal.has_blocks) {
    const auto whole = static_cast<size_t>(std::llround(wanted));
    return std::string(share > 0 ? std::max<size_t>(whole, 1) : 0, '#');
  }
  const auto eighths = static_cast<size_t>(std::llround(wanted * 8));
  std::string bar;
  for (size_t i = 0; i < eighths / 8; ++i) bar += "\u2588";
  constexpr const char* kParts[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
  bar += kParts[eighths % 8];
  return bar.empty() && share > 0 ? kParts[1] : bar;
}

std::string histogram_text(double low, double high, const std::vector<uint64_t>& counts, const Terminal& terminal) {
  if (counts.empty()) return "";
  const uint64_t most = *std::max_element(counts.begin(), counts.end());
  const auto limit = [&](size_t i) {
    const double share = static_cast<double>(i) / static_cast<double>(counts.size());
    return number_text(std::isfinite(high - low) ? low + (high - low) * share : low * (1 - share) + high * share);
  };
  size_t limits = 0, digits = std::to_string(most).size();
  for (size_t i = 0; i < counts.size(); ++i) limits = std::max(limits, limit(i).size());
  const size_t columns = left_of(terminal, limits + digits + 4);
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double share = most > 0 ? static_cast<double>(counts[i]) / static_cast<double>(most) : 0;
    const std::string line =
        fmt::format("{:>{}}  {:>{}}  {}", limit(i), limits, counts[i], digits, bar_text(share, columns, terminal));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string plot_text(const std::vector<std::pair<double, double>>& points, size_t rows, const Terminal& terminal) {
  Span all;
  std::vector<std::pair<double, double>> finite;
  for (const auto& [x, y] : points) {
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    finite.emplace_back(x, y);
    all.low = std::min(all.low, y);
    all.high = std::max(all.high, y);
  }
  if (finite.empty()) return "";
  const std::string top = number_text(all.high), bottom = number_text(all.low);
  const size_t labels = std::max(top.size(), bottom.size());
  const size_t columns = left_of(terminal, labels + 3);
  const double first = finite.front().first, last = finite.back().first;
  std::vector<Span> spans(columns);
  for (const auto& [x, y] : finite) {
    Span& span = spans[place_of(x, first, last, columns)];
    span.low = std::min(span.low, y);
    span.high = std::max(span.high, y);
  }
  std::vector<std::string> field(rows, std::string(columns, ' '));
  for (size_t column = 0; column < columns; ++column) {
    if (spans[column].high < spans[column].low) continue;
    const size_t from = place_of(spans[column].low, all.low, all.high, rows);
    const size_t to = place_of(spans[column].high, all.low, all.high, rows);
    for (size_t row = from; row <= to; ++row) field[rows - 1 - row][column] = '*';
  }
  std::string text;
  for (size_t row = 0; row < rows; ++row) {
    const std::string label = row == 0 ? top : row + 1 == rows ? bottom : "";
    const std::string line = fmt::format("{:>{}} | {}", label, labels, field[row]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  const std::string left = number_text(first), right = number_text(last);
  const size_t between = columns > left.size() + right.size() ? columns - left.size() - right.size() : 1;
  return text + fmt::format("{:>{}}   {}{}{}\n", "", labels, left, std::string(between, ' '), right);
}

}  // namespace longhaul::console
