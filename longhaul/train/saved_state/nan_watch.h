#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"
#include "longhaul/session/environment.h"
#include "longhaul/tensor/tensor.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// Checks the saved values for NaN that the previous checkpoint did not have. A training run with new NaN is lost, and
// sooner or later would replace all good checkpoints. The check looks at a few elements of each floating-point tensor,
// so it costs almost nothing but may miss scattered NaN. A tensor that has NaN in the first checkpoint is expected to
// have them.
//
// Its state is recorded with each checkpoint (record_environment()), so a restart continues with it. Any thread may
// call.
class NanWatch {
 public:
  // Checks the values that are about to be written.
  void look(const std::vector<SaverNodes::SavedTensor>& tensors, const std::vector<Tensor>& values);

  // Call it when the values checked last are about to replace `prefix`, if that exists. If `prefix` is the last
  // checkpoint without new NaN, `before` takes its place; it may be empty.
  void will_replace(const std::string& prefix, const std::string& before);

  // If the values checked last have new NaN, the last checkpoint without them, which must be kept; empty: none.
  std::string last_without() const;
  Environment record() const;

  // Call it when the values checked last are committed as `prefix`, and listed. Warns once about new NaN.
  void saved(const std::string& prefix);

  // Call it when the variables were restored from `prefix`, which has this record. Warns about NaN that were new in it.
  void restored(FileSystem& files, const std::string& prefix, const Environment& record);

 private:
  std::string note_saved(const std::string& prefix);
  std::string note_restored(FileSystem& files, const std::string& prefix, const Environment& record);
  bool has_new() const REQUIRES(mutex_) { return !new_.empty(); }

  mutable Mutex mutex_;
  std::set<std::string> seen_ GUARDED_BY(mutex_);                      // names with NaN in the last check
  std::optional<std::set<std::string>> by_nature_ GUARDED_BY(mutex_);  // absent: no checkpoint yet
  std::set<std::string> new_ GUARDED_BY(mutex_);                       // those in seen_ but not in by_nature_
  std::string last_without_ GUARDED_BY(mutex_);                        // the last checkpoint without new NaN
  bool has_warned_ GUARDED_BY(mutex_) = false;                         // since last_without_
};

// Whether one of the checked elements is NaN: 16 at most, including the first and the last.
bool has_nan_in_sample(const Tensor& tensor);

// The last checkpoint without new NaN, as NanWatch recorded it with this checkpoint; "": none.
std::string last_without_nan(FileSystem& files, const std::string& prefix);

// Removes the entries that NanWatch records.
void remove_nan_record(Environment& environment);

}  // namespace longhaul
