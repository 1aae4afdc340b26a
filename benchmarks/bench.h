#pragma once

#include <functional>
#include <string>
#include <vector>

namespace longhaul::bench {

// What a row asks: ours / beside at least or at most the goal; or ours - beside at most the goal, in the row's unit.
enum class Bound { kAtLeast, kAtMost, kAtMostMore };

// One measurement of ours and of what stands beside it, in the row's unit.
struct Pair {
  double ours = 0;
  double beside = 0;
};

// One line of the table: a figure of ours beside a peer's or a limit's, measured in the same run.
//
//   rows.push_back({.name = "events/scalars_1_producer",
//                   .what = "scalar events until on disk, compared with buffered protobuf",
//                   .unit = "events/s",
//                   .goal = 0.4,
//                   .sample = [] { return Pair{ours(), beside()}; }});
struct Row {
  std::string name;  // "area/what": the filter looks for its text here
  std::string what;  // ours, and what it stands beside
  std::string unit;
  double goal = 1;
  Bound bound = Bound::kAtLeast;

  // Whether the goal may be missed by less than the ratio's 95 % confidence interval: for paired runs whose difference
  // is as small as their noise.
  bool forgive_noise = false;

  // Measures both once. It is called `samples` times, so the two are interleaved; one more call before that warms up.
  std::function<Pair()> sample;
  int samples = 5;

  // A second goal, for our figure itself (4 million/s, 60 ns); none where it is 0.
  double goal_ours = 0;
};

// A row with its medians.
struct Result {
  std::string name, what, unit;
  double ours = 0, beside = 0;  // medians
  double ratio = 0;             // the median of the pairs' ratios
  double interval = 0;          // half of the 95 % confidence interval of the ratios' mean
  std::string goal;             // ">= 1.20", with the second goal: ">= 0.40, >= 4e+06 events/s"
  bool holds = false;
};

// A row's sample of two sides that each change the machine for the one after it: by the memory that they give back, by
// what the disk has to clean up. So from one sample to the next the other side goes first.
std::function<Pair()> in_turns(std::function<double()> ours, std::function<double()> beside);

// Errors are whatever `row.sample` throws.
Result measure(const Row& row);

// One aligned line for the table, and its head; and the same as a line of JSON with the keys name, ours, unit, beside,
// ratio, goal, holds.
std::string table_head();
std::string table_line(const Result& result);
std::string json_line(const Result& result);

double median(std::vector<double> values);                // of at least one value
double half_interval(const std::vector<double>& values);  // of their mean, 95 %; 0 for a single value

// Seconds that `body` takes.
double time_seconds(const std::function<void()>& body);

}  // namespace longhaul::bench
