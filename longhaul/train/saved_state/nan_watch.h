#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/io/file.h"
#include "longhaul/session/environment.h"
#include "longhaul/tensor/tensor.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// Looks at what a saver saves for NaN that the checkpoint before had not: such a training is lost, and would replace
// all good checkpoints by and by. It looks at a few elements of each floating tensor, so it costs nothing, and one that
// has NaN here and there may be skipped. What has NaN in the first checkpoint already has it by its nature.
//
// What it knows stands beside each checkpoint (record_environment()), so a restart goes on with it. Any thread.
class NanWatch {
 public:
  // What is to be written now.
  void look(const std::vector<SaverNodes::SavedTensor>& tensors, const std::vector<Tensor>& values);

  // What was looked at last is to replace `prefix`, if that is there. If it is the last one without, `before` is from
  // now on, which may be empty.
  void will_replace(const std::string& prefix, const std::string& before);

  // Of what was looked at last: the checkpoint that is to be kept, as it is the last one without; empty: none.
  std::string last_without() const;
  Environment record() const;

  // What was looked at last is committed as `prefix`, and listed. Warns once of NaN that are new.
  void saved(const std::string& prefix);

  // The variables are as in `prefix` now, with which that was recorded. Warns of NaN that were new in it.
  void restored(FileSystem& files, const std::string& prefix, const Environment& record);

 private:
  std::string note_saved(const std::string& prefix);
  std::string note_restored(FileSystem& files, const std::string& prefix, const Environment& record);
  bool has_new() const REQUIRES(mutex_) { return !new_.empty(); }

  mutable Mutex mutex_;
  std::set<std::string> seen_ GUARDED_BY(mutex_);                      // names with NaN, when it looked last
  std::optional<std::set<std::string>> by_nature_ GUARDED_BY(mutex_);  // absent: there was no checkpoint yet
  std::set<std::string> new_ GUARDED_BY(mutex_);                       // those seen that are not
  std::string last_without_ GUARDED_BY(mutex_);                        // new ones
  bool has_warned_ GUARDED_BY(mutex_) = false;                         // since then
};

// Whether one of the elements has it that are looked at: 16 at most, the first and the last among them.
bool has_nan_in_sample(const Tensor& tensor);

// What NanWatch has recorded beside a checkpoint as the last one without NaN that are new; "": it has none.
std::string last_without_nan(FileSystem& files, const std::string& prefix);

// Takes the names off that NanWatch records.
void remove_nan_record(Environment& environment);

}  // namespace longhaul
