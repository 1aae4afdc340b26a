#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/console/text/terminal.h"

namespace longhaul::console {

// How numbers are shown: six digits that count.
std::string number_text(double value);

// A bar of that share, 0 to 1, of `columns`: whole columns, or eighths where the terminal has them.
std::string bar_text(double share, size_t columns, const Terminal& terminal);

// A line for each of the equally wide ranges from `low` to `high`: its limits, its count, and a bar.
std::string histogram_text(double low, double high, const std::vector<uint64_t>& counts, const Terminal& terminal);

// Points (x ascending) in a field of characters, with the limits of both axes; values that are not finite are left out.
// Where several points share a column, the line goes through all of them.
std::string plot_text(const std::vector<std::pair<double, double>>& points, size_t rows, const Terminal& terminal);

}  // namespace longhaul::console
