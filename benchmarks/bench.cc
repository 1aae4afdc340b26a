#include "benchmarks/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace longhaul::bench {
namespace {

bool reaches(double value, double goal, Bound bound) {
  return bound == Bound::kAtLeast ? value >= goal : value <= goal;
}

const char* sign_of(Bound bound) {
  return bound == Bound::kAtLeast ? ">=" : "<=";
}

std::string goal_text(const Row& row) {
  std::string text = row.bound == Bound::kAtMostMore ? fmt::format("<= {:g} {} more", row.goal, row.unit)
                                                     : fmt::format("{} {:.2f}", sign_of(row.bound), row.goal);
  if (row.goal_ours != 0) text += fmt::format(", {} {:g} {}", sign_of(row.bound), row.goal_ours, row.unit);
  return text;
}

// Four significant digits, and no exponent where people read the figure at a glance.
std::string figure(double value) {
  if (std::abs(value) >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (std::abs(value) >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

bool holds(const Row& row, const Result& result) {
  if (row.goal_ours != 0 && !reaches(result.ours, row.goal_ours, row.bound)) return false;
  if (row.bound == Bound::kAtMostMore) return result.ours - result.beside <= row.goal;
  const double slack = row.forgive_noise ? result.interval : 0;
  return reaches(result.ratio + (row.bound == Bound::kAtLeast ? slack : -slack), row.goal, row.bound);
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double half_interval(const std::vector<double>& values) {
  const double count = static_cast<double>(values.size());
  if (count < 2) return 0;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / count) * (value - sum / count);
  const double student = 1.96 + 3.3 / (count - 1);  // within 3 % of the 97.5 % quantile, from five values on
  return student * std::sqrt(squares / (count - 1) / count);
}

double time_seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::function<Pair()> in_turns(std::function<double()> ours, std::function<double()> beside) {
  return [ours = std::move(ours), beside = std::move(beside), ours_first = false]() mutable {
    ours_first = !ours_first;
    Pair pair;
    if (ours_first) pair.ours = ours();
    pair.beside = beside();
    if (!ours_first) pair.ours = ours();
    return pair;
  };
}

Result measure(const Row& row) {
  std::vector<double> ours, beside, ratios;
  row.sample();
  for (int i = 0; i < row.samples; ++i) {
    const Pair pair = row.sample();
    ours.push_back(pair.ours);
    beside.push_back(pair.beside);
    ratios.push_back(pair.ours / pair.beside);
  }
  Result result{.name = row.name, .what = row.what, .unit = row.unit, .goal = goal_text(row)};
  result.ours = median(ours);
  result.beside = median(beside);
  result.ratio = median(ratios);
  result.interval = half_interval(ratios);
  result.holds = holds(row, result);
  return result;
}

std::string table_head() {
  return fmt::format("{:<36} {:>10} {:<9} {:>10} {:>7} {:>7}  {:<28} {:<5} {}", "name", "ours", "unit", "beside",
                     "ratio", "+-", "goal", "holds", "what");
}

std::string table_line(const Result& result) {
  return fmt::format("{:<36} {:>10} {:<9} {:>10} {:>7.3f} {:>7.3f}  {:<28} {:<5} {}", result.name, figure(result.ours),
                     result.unit, figure(result.beside), result.ratio, result.interval, result.goal,
                     result.holds ? "yes" : "NO", result.what);
}

std::string json_line(const Result& result) {
  nlohmann::ordered_json line;
  line["name"] = result.name;
  line["ours"] = result.ours;
  line["unit"] = result.unit;
  line["beside"] = result.beside;
  line["ratio"] = result.ratio;
  line["goal"] = result.goal;
  line["holds"] = result.holds;
  return line.dump();
}

}  // namespace longhaul::bench
