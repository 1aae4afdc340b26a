#pragma once

#include <string>
#include <utility>
#include <vector>

#include "longhaul/console/text/terminal.h"

namespace longhaul::console {

struct Cell {
  Cell(std::string shown, Paint with = Paint::kPlain) : text(std::move(shown)), paint(with) {}
  Cell(const char* shown) : text(shown) {}

  std::string text;
  Paint paint = Paint::kPlain;
};

enum class Align { kLeft, kRight };

struct TableColumn {
  std::string head;
  Align align = Align::kLeft;
};

// Rows in columns. The texts may be of any origin: they are shown().
class Table {
 public:
  explicit Table(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns. Where a terminal is too narrow, the texts of the widest column that is aligned
  // to the left are cut in the middle.
  void add(std::vector<Cell> row);

  bool is_empty() const { return rows_.empty(); }

  // Two spaces between columns, the heads in the first line; columns without any text are left out. What is too wide
  // for the terminal even so is written as a block of lines for each row.
  std::string text(const Terminal& terminal) const;

 private:
  std::vector<size_t> widths() const;
  size_t widest_of_text(const std::vector<size_t>& widths) const;
  std::string as_lines(const std::vector<size_t>& widths, const Terminal& terminal) const;
  std::string as_blocks(const Terminal& terminal) const;

  const std::vector<TableColumn> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace longhaul::console
