#include "longhaul/console/checkpoints/checkpoint_contents.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include "longhaul/base/nearest_name.h"
#include "longhaul/base/size_text.h"
#include "longhaul/console/checkpoints/tensor_numbers.h"
#include "longhaul/console/checkpoints/tensor_source.h"
#include "longhaul/console/text/plot.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/table.h"

namespace longhaul::console {
namespace {

constexpr size_t kRanges = 16;           // of a histogram
constexpr int64_t kFewElements = 16;     // are shown one by one
constexpr uint64_t kMostText = 1 << 20;  // bytes of strings that are read to be shown

bool has_pattern(const std::string& name) {
  return name.find_first_of("*?[") != name.npos;
}

bool can_be_read(const StoredTensor& tensor) {
  return tensor.known && has_numbers(*tensor.known);
}

// The wanted ones. NotFoundError: there is none.
std::vector<const StoredTensor*> chosen_from(const TensorSource& source, const std::string& name) {
  if (const StoredTensor* exact = source.find(name); exact != nullptr && !name.empty()) return {exact};
  std::vector<const StoredTensor*> chosen;
  for (const StoredTensor& tensor : source.tensors()) {
    if (name.empty() || (has_pattern(name) && ::fnmatch(name.c_str(), tensor.name.c_str(), 0) == 0)) {
      chosen.push_back(&tensor);
    }
  }
  if (!chosen.empty() || name.empty()) return chosen;
  NearestName nearest(name);
  for (const StoredTensor& tensor : source.tensors()) nearest.offer(tensor.name);
  throw NotFoundError(fmt::format("{} has no tensor {}{}", source.path(), name, nearest.hint()));
}

std::string extreme_text(const TensorStatistics& statistics, const Number& value) {
  return statistics.has_extremes() ? number_text(value) : "-";
}

Json to_json(const StoredTensor& tensor) {
  return {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape.dims()}, {"bytes", tensor.bytes}};
}

void add_statistics(const TensorStatistics& statistics, Json& json) {
  json["elements"] = statistics.count;
  json["minimum"] = statistics.has_extremes() ? number_json(statistics.exact_minimum) : Json();
  json["maximum"] = statistics.has_extremes() ? number_json(statistics.exact_maximum) : Json();
  json["mean"] = statistics.mean;
  json["nan"] = statistics.nans;
  json["infinite"] = statistics.infinities;
  json["zero"] = statistics.zeros;
}

// Tells of bytes that are read, of all that will be.
class Meter {
 public:
  Meter(const Progress& progress, uint64_t total) : progress_(progress), total_(total) {}
  void add(uint64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }

 private:
  const Progress& progress_;
  const uint64_t total_;
  uint64_t done_ = 0;
};

uint64_t bytes_of(const std::vector<const StoredTensor*>& chosen) {
  uint64_t total = 0;
  for (const StoredTensor* tensor : chosen) total += can_be_read(*tensor) ? tensor->bytes : 0;
  return total;
}

void show_list(const TensorSource& source, const std::vector<const StoredTensor*>& chosen, bool with_statistics,
               const Terminal& terminal, const Progress& progress, Report& report) {
  Table table({{"name"},
               {"dtype"},
               {"shape"},
               {"size", Align::kRight},
               {"minimum", Align::kRight},
               {"maximum", Align::kRight},
               {"mean", Align::kRight},
               {"NaN", Align::kRight}});
  Meter meter(progress, bytes_of(chosen));
  uint64_t bytes = 0;
  for (const StoredTensor* tensor : chosen) {
    std::vector<Cell> row{tensor->name, tensor->dtype, tensor->shape.to_string(), size_text(tensor->bytes)};
    Json json = to_json(*tensor);
    if (with_statistics && can_be_read(*tensor)) {
      const TensorStatistics all = statistics_of(source, *tensor, [&](uint64_t read) { meter.add(read); });
      for (const std::string& text : {extreme_text(all, all.exact_minimum), extreme_text(all, all.exact_maximum),
                                      number_text(all.mean), std::to_string(all.nans)}) {
        row.emplace_back(text);
      }
      if (all.nans > 0) row.back().paint = Paint::kRed;
      add_statistics(all, json);
    }
    row.resize(8, Cell(""));
    table.add(std::move(row));
    report.json["tensors"].push_back(std::move(json));
    bytes += tensor->bytes;
  }
  report.text += table.text(terminal);
  report.text += fmt::format("{} tensor{}, {}\n", chosen.size(), chosen.size() == 1 ? "" : "s", size_text(bytes));
}

// The elements of a small tensor.
std::string elements_text(const Tensor& tensor) {
  return shown(tensor.to_string(kFewElements), 2000);
}

void show_values(const TensorSource& source, const StoredTensor& tensor, const Terminal& terminal,
                 const Progress& progress, Report& report, Json& json) {
  Meter meter(progress, 2 * tensor.bytes);
  const TensorStatistics all = statistics_of(source, tensor, [&](uint64_t bytes) { meter.add(bytes); });
  add_statistics(all, json);
  report.text += fmt::format("minimum {}  maximum {}  mean {}\n", extreme_text(all, all.exact_minimum),
                             extreme_text(all, all.exact_maximum), number_text(all.mean));
  const std::string bad = fmt::format("{} NaN, {} infinite", all.nans, all.infinities);
  const bool is_bad = all.nans + all.infinities > 0;
  report.text += fmt::format("{} zero, {}\n", all.zeros, painted(bad, is_bad ? Paint::kRed : Paint::kPlain, terminal));
  if (!std::isfinite(all.minimum) || !std::isfinite(all.maximum) || all.count < 2) return;
  const std::vector<uint64_t> counts = histogram_of(source, tensor, all, kRanges);
  report.text += histogram_text(all.minimum, all.maximum, counts, terminal);
  json["histogram"] = {{"low", all.minimum}, {"high", all.maximum}, {"counts", counts}};
}

void show_one(const TensorSource& source, const StoredTensor& tensor, const Terminal& terminal,
              const Progress& progress, Report& report) {
  Json json = to_json(tensor);
  report.text += fmt::format("{}\n{}{}, {}\n", painted(shown(tensor.name, 1000), Paint::kBold, terminal), tensor.dtype,
                             tensor.shape.to_string(), size_text(tensor.bytes));
  const bool is_small = tensor.shape.num_elements() <= kFewElements && tensor.bytes <= kMostText;
  if (tensor.known && is_small) {
    const std::string values = elements_text(source.read(tensor));
    report.text += values + "\n";
    json["values"] = values;
  }
  if (!tensor.known) report.text += "the library lacks this dtype: its values are not shown\n";
  if (can_be_read(tensor) && tensor.shape.num_elements() > 0) {
    show_values(source, tensor, terminal, progress, report, json);
  }
  report.json["tensors"].push_back(std::move(json));
}

}  // namespace

Report show_contents(FileSystem& files, const ContentsOptions& options, const Terminal& terminal,
                     const Progress& progress) {
  const auto source = open_tensors(files, options.path);
  const std::vector<const StoredTensor*> chosen = chosen_from(*source, options.name);
  Report report{.json = json_of("show")};
  report.json["path"] = source->path();
  report.json["kind"] = source->format();
  report.json["total_bytes"] = source->total_bytes();
  report.json["tensors"] = Json::array();
  report.text += fmt::format("{} ({})\n", shown(source->path(), 1000), source->format());
  const bool is_single = chosen.size() == 1 && !options.name.empty() && !has_pattern(options.name);
  if (is_single) {
    show_one(*source, *chosen[0], terminal, progress, report);
  } else {
    show_list(*source, chosen, options.with_statistics, terminal, progress, report);
  }
  return report;
}

}  // namespace longhaul::console
