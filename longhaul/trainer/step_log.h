#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/events/file_writer.h"

namespace longhaul {

// The values that a Trainer's program logs: scalars for TensorBoard, the first few also in the line of progress, and
// the loss of each step. Each is named once in a run if it is NaN or infinite. One thread.
class StepLog {
 public:
  // Each name is written every `summary_steps` steps at most; 0: never.
  explicit StepLog(int64_t summary_steps) : summary_steps_(summary_steps) {}

  // null: no summaries. `is_watched`: something else looks at the losses, and tells of NaN.
  void begin_run(FileWriter* writer, int64_t step, bool is_watched = false);

  // A tensor has one element, of any real dtype; one on a device is read only when it is written or shown.
  // InvalidArgumentError: it has not, or is undefined.
  void log(std::string_view name, const at::Tensor& value, int64_t step);
  void log(std::string_view name, double value, int64_t step);

  // The loss of the step under way that was logged last, as a tensor, which this reads, or a number; nullopt: none was.
  std::optional<double> loss() const;
  // The loss of the step that ends, as it was logged under the name "loss"; undefined: it was not, and the log tells
  // once that some steps had none.
  at::Tensor take_loss();
  void warn_of_loss_outside(std::string_view name);  // once in a run: of a loss before the loops of steps

  // "loss 0.1049  accuracy 0.8837", in the order in which they were logged first, four at most.
  std::string shown() const;
  // Warns of values that are NaN or infinite, each once in a run. Reads them, those on devices too.
  void look_at_values();

 private:
  struct Entry {
    std::string name;
    at::Tensor tensor{};  // undefined: `number`
    double number = 0;
    int64_t step = 0;  // that has logged it last
    int64_t next_summary = 0;
    bool has_warned = false;

    double value() const;
  };
  Entry& entry(std::string_view name);
  void take(Entry& entry, int64_t step);
  void look_at(Entry& entry) const;
  void write_if_due(Entry& entry, int64_t step);

  const int64_t summary_steps_;
  FileWriter* writer_ = nullptr;
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  // in entries_
  at::Tensor loss_;
  std::optional<double> loss_number_;  // if it was logged last
  int64_t steps_without_loss_ = 0;
  bool is_watched_ = false;
  bool has_warned_of_outside_ = false;
};

}  // namespace longhaul
