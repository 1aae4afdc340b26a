#include "longhaul/console/text/table.h"

#include <algorithm>

#include "longhaul/console/text/shown_text.h"

namespace longhaul::console {
namespace {

constexpr size_t kMostOfACell = 200;
constexpr size_t kShortestName = 12;
constexpr size_t kGap = 2;

std::string padding(size_t columns) {
  return std::string(columns, ' ');
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) cell.text = shown(cell.text, kMostOfACell);
  rows_.push_back(std::move(row));
}

// 0: the column is empty.
std::vector<size_t> Table::widths() const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i].text));
  }
  for (size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] > 0) widths[i] = std::max(widths[i], columns_of(columns_[i].head));
  }
  return widths;
}

std::string Table::text(const Terminal& terminal) const {
  std::vector<size_t> wide = widths();
  size_t total = 0;
  for (const size_t width : wide) total += width > 0 ? width + kGap : 0;
  total -= std::min(total, kGap);
  if (terminal.columns == 0 || total <= terminal.columns) return as_lines(wide, terminal);
  const size_t excess = total - terminal.columns;
  size_t& widest = wide[widest_of_text(wide)];
  if (widest < kShortestName + excess) return as_blocks(terminal);
  widest -= excess;
  return as_lines(wide, terminal);
}

// Which column gives way: numbers never do.
size_t Table::widest_of_text(const std::vector<size_t>& widths) const {
  size_t widest = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (columns_[i].align == Align::kLeft && widths[i] > widths[widest]) widest = i;
  }
  return widest;
}

std::string Table::as_lines(const std::vector<size_t>& widths, const Terminal& terminal) const {
  std::string text;
  const auto add_line = [&](const auto& cell_at) {
    std::string line, gap;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0) continue;
      const Cell& cell = cell_at(i);
      const std::string fitting = shown(cell.text, widths[i]);
      const std::string pad = padding(widths[i] - std::min(widths[i], columns_of(fitting)));
      const std::string with_colour = painted(fitting, cell.paint, terminal);
      const bool is_right = columns_[i].align == Align::kRight;
      if (fitting.empty()) {
        gap += pad + padding(kGap);
        continue;
      }
      line += gap + (is_right ? pad + with_colour : with_colour);
      gap = (is_right ? "" : pad) + padding(kGap);
    }
    text += line + "\n";
  };
  std::vector<Cell> heads;
  for (const TableColumn& column : columns_) heads.emplace_back(column.head, Paint::kBold);
  const bool has_heads =
      std::any_of(columns_.begin(), columns_.end(), [](const auto& one) { return !one.head.empty(); });
  if (has_heads && !rows_.empty()) add_line([&](size_t i) -> const Cell& { return heads[i]; });
  for (const auto& row : rows_) add_line([&](size_t i) -> const Cell& { return row[i]; });
  return text;
}

std::string Table::as_blocks(const Terminal& terminal) const {
  std::string text;
  for (const auto& row : rows_) {
    text += painted(shown(row[0].text, terminal.columns), row[0].paint, terminal) + "\n";
    for (size_t i = 1; i < row.size(); ++i) {
      if (row[i].text.empty()) continue;
      const std::string head = columns_[i].head.empty() ? "  " : "  " + columns_[i].head + ": ";
      const size_t left = terminal.columns > head.size() ? terminal.columns - head.size() : kShortestName;
      text += head + painted(shown(row[i].text, std::max(left, kShortestName)), row[i].paint, terminal) + "\n";
    }
  }
  return text;
}

}  // namespace longhaul::console
