#include "longhaul/train/saved_state/nan_watch.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/train/saved_state/environment_record.h"

namespace longhaul {
namespace {

constexpr char kByNature[] = "nan", kNew[] = "new nan", kLastWithout[] = "last without new nan";
constexpr char kNoNames[] = "none";

template <typename T>
bool has_nan(std::span<const T> elements) {
  constexpr size_t kMost = 16;
  const size_t looks = std::min(elements.size(), kMost);
  for (size_t i = 0; i < looks; ++i) {
    const size_t at = looks == 1 ? 0 : i * (elements.size() - 1) / (looks - 1);
    if (std::isnan(static_cast<double>(static_cast<float>(elements[at])))) return true;
  }
  return false;
}

std::string to_text(const std::set<std::string>& names) {
  return names.empty() ? kNoNames : fmt::format("{}", fmt::join(names, ","));
}

std::set<std::string> from_text(std::string_view text) {
  std::set<std::string> names;
  if (text == kNoNames) return names;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    names.emplace(name);
    text.remove_prefix(std::min(text.size(), name.size() + 1));
  }
  return names;
}

// `last`: the last one without, and what is to be said of it.
std::string warning(const std::string& what, const std::set<std::string>& names, const std::string& last) {
  return fmt::format(
      "{} NaNs that the previous checkpoint did not have, in {}. {} A NanTensorHook, or a check of the loss, stops "
      "training in time",
      what, first_names({names.begin(), names.end()}, 5), last);
}

std::string how_to_go_back(const std::string& last_without) {
  if (last_without.empty()) return "There is no checkpoint without them.";
  return fmt::format(
      "The last checkpoint without them is {}, which is kept until another one without them is saved. To go back to "
      "it, stop training, name it in the file {} of the logdir (model_checkpoint_path: \"{}\") and start again, "
      "perhaps with a lower learning rate.",
      last_without, kDefaultStateFile, base_name(last_without));
}

// A checkpoint that a record names, wherever it says that it lies; "": it names none.
std::string beside(const std::string& prefix, const std::string& named) {
  return named.empty() || named == kNoNames ? "" : join_path(directory_name(prefix), base_name(named));
}

}  // namespace

bool has_nan_in_sample(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case kFloat: return has_nan(tensor.flat<float>());
    case kDouble: return has_nan(tensor.flat<double>());
    case kHalf: return has_nan(tensor.flat<Half>());
    case kBFloat16: return has_nan(tensor.flat<BFloat16>());
    default: return false;
  }
}

void NanWatch::look(const std::vector<SaverNodes::SavedTensor>& tensors, const std::vector<Tensor>& values) {
  std::set<std::string> seen;
  for (size_t i = 0; i < values.size(); ++i) {
    if (has_nan_in_sample(values[i])) seen.insert(tensors[i].name);
  }
  MutexLock lock(mutex_);
  seen_ = std::move(seen);
  new_.clear();
  if (!by_nature_) return;
  std::set_difference(seen_.begin(), seen_.end(), by_nature_->begin(), by_nature_->end(),
                      std::inserter(new_, new_.end()));
}

std::string NanWatch::last_without() const {
  MutexLock lock(mutex_);
  return has_new() ? last_without_ : "";
}

// Short enough to be read again (graph/meta_graph/meta_info.h), whatever has become NaN.
Environment NanWatch::record() const {
  constexpr size_t kMostNames = 20, kMostBytes = 32 << 10;
  MutexLock lock(mutex_);
  const std::string by_nature = to_text(has_new() ? *by_nature_ : seen_);
  if (by_nature.size() > kMostBytes) return {};
  if (!has_new()) return {{kByNature, by_nature}};
  const auto end = std::next(new_.begin(), static_cast<long>(std::min(new_.size(), kMostNames)));
  return {{kByNature, by_nature},
          {kNew, to_text({new_.begin(), end})},
          {kLastWithout, last_without_.empty() ? kNoNames : base_name(last_without_)}};
}

void NanWatch::will_replace(const std::string& prefix, const std::string& before) {
  MutexLock lock(mutex_);
  if (!has_new() || prefix != last_without_) return;
  last_without_ = before;
  has_warned_ = false;
}

void NanWatch::saved(const std::string& prefix) {
  if (const std::string text = note_saved(prefix); !text.empty()) log_warning("{}", text);
}

// What there is to warn of, if anything.
std::string NanWatch::note_saved(const std::string& prefix) {
  MutexLock lock(mutex_);
  if (has_new()) {
    if (std::exchange(has_warned_, true)) return "";
    return warning(prefix + " is saved with", new_, how_to_go_back(last_without_));
  }
  by_nature_ = seen_;
  last_without_ = prefix;
  has_warned_ = false;
  return "";
}

void NanWatch::restored(FileSystem& files, const std::string& prefix, const Environment& record) {
  if (const std::string text = note_restored(files, prefix, record); !text.empty()) log_warning("{}", text);
}

std::string NanWatch::note_restored(FileSystem& files, const std::string& prefix, const Environment& record) {
  const auto by_nature = record.find(kByNature), fresh = record.find(kNew), last = record.find(kLastWithout);
  MutexLock lock(mutex_);
  by_nature_.reset();
  new_.clear();
  last_without_ = prefix;
  has_warned_ = false;
  if (by_nature != record.end()) by_nature_ = from_text(by_nature->second);
  if (!by_nature_ || fresh == record.end() || last == record.end()) return "";
  has_warned_ = true;
  const std::string what = prefix + " is restored with";
  const std::set<std::string> names = from_text(fresh->second);
  last_without_ = beside(prefix, last->second);
  if (last_without_.empty() || checkpoint_exists(files, last_without_))
    return warning(what, names, how_to_go_back(last_without_));
  return warning(
      what, names,
      fmt::format("The last checkpoint without them was {}, which no longer exists here: a mirror may have it.",
                  last_without_));
}

std::string last_without_nan(FileSystem& files, const std::string& prefix) {
  const Environment record = recorded_environment(files, prefix).value_or(Environment());
  const auto last = record.find(kLastWithout);
  return last == record.end() ? "" : beside(prefix, last->second);
}

void remove_nan_record(Environment& environment) {
  for (const char* name : {kByNature, kNew, kLastWithout}) environment.erase(name);
}

}  // namespace longhaul
