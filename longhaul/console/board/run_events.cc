#include "longhaul/console/board/run_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/proto/event.pb.h"

namespace longhaul::console {
namespace {

constexpr size_t kWorthThinning = 4096;

std::optional<MediaKind> media_kind(std::string_view kind) {
  if (kind == "histogram") return MediaKind::kHistogram;
  if (kind == "image") return MediaKind::kImage;
  if (kind == "text") return MediaKind::kText;
  return std::nullopt;
}

void keep_every_second(std::vector<MediaPlace>& places) {
  size_t kept = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (i % 2 == 0 || i + 1 == places.size()) places[kept++] = places[i];
  }
  places.resize(kept);
}

}  // namespace

RunEvents::RunEvents(FileSystem& files, std::string directory, TagNames& tags, std::atomic<uint64_t>& samples)
    : files_(files),
      directory_(std::move(directory)),
      tags_(tags),
      samples_(samples),
      event_files_(files_, directory_) {}

RunEvents::~RunEvents() {
  MutexLock lock(mutex_);
  samples_ -= kept_samples();
}

uint64_t RunEvents::kept_samples() const {
  uint64_t all = 0;
  for (const auto& [tag, curve] : curves_) all += curve.samples().size();
  return all;
}

bool RunEvents::read(const std::function<bool()>& go_on) {
  const RunFiles::End end = event_files_.read([&](const proto::Event& event, const EventPlace& place) {
    {
      MutexLock lock(mutex_);
      apply(event, place);
    }
    return go_on();
  });
  is_read_ = is_read_ || end == RunFiles::End::kRead;
  MutexLock lock(mutex_);
  problems_ = event_files_.problems();
  return end == RunFiles::End::kReplaced;
}

void RunEvents::apply(const proto::Event& event, const EventPlace& place) {
  if (event.has_session_log() && event.session_log().status() == proto::SessionLog::START) {
    begin_again(event.step(), event.wall_time());
  }
  for (int i = 0; i < event.summary().value_size(); ++i) {
    const EventValue value = value_of(event.summary().value(i), event);
    const auto kind = media_kind(value.kind);
    if (!kind && !value.number) continue;
    const auto tag = tags_.number_of(value.tag);
    if (!tag) {
      if (left_out_++ == 0) left_out_tag_ = value.tag.substr(0, kMostTagBytes);
    } else if (value.number) {
      add_scalar(*tag, {value.step, value.time, *value.number});
    } else {
      add_media(*kind, *tag, {value.step, value.time, place.offset, file_number(place.path), static_cast<uint32_t>(i)});
    }
  }
}

void RunEvents::add_scalar(uint32_t tag, const CurveSample& sample) {
  LongCurve& curve = curves_[tag];
  const size_t before = curve.samples().size();
  curve.add(sample);
  samples_ += curve.samples().size() - before;  // which may be negative: modulo 2^64
  if (samples_ > kMostSamplesOfAll) thin_one();
}

void RunEvents::add_media(MediaKind kind, uint32_t tag, const MediaPlace& place) {
  MediaSeries& series = media_[{kind, tag}];
  while (!series.places.empty() && series.places.back().step >= place.step) series.places.pop_back();
  series.places.push_back(place);
  ++series.added;
  if (series.places.size() > kMostPlaces) keep_every_second(series.places);
}

// As TensorBoard has it: what a run made from that step on, and no checkpoint had.
void RunEvents::begin_again(int64_t step, double time) {
  if (starts_.size() < kMostStarts) starts_.emplace_back(step, time);
  const uint64_t before = kept_samples();
  for (auto& [tag, curve] : curves_) curve.begin_again(step);
  samples_ -= before - kept_samples();
  for (auto& [key, series] : media_) {
    std::erase_if(series.places, [&](const MediaPlace& place) { return place.step >= step; });
  }
}

bool RunEvents::thin_largest() {
  MutexLock lock(mutex_);
  return thin_one();
}

bool RunEvents::thin_one() {
  const auto largest = std::max_element(curves_.begin(), curves_.end(), [](const auto& a, const auto& b) {
    return a.second.samples().size() < b.second.samples().size();
  });
  if (largest == curves_.end() || largest->second.samples().size() < kWorthThinning) return false;
  const size_t before = largest->second.samples().size();
  largest->second.thin_out();
  samples_ -= before - largest->second.samples().size();
  return true;
}

uint32_t RunEvents::file_number(const std::string& path) {
  // Events come file by file: it is most often the last one.
  const auto known = std::find(paths_.rbegin(), paths_.rend(), path);
  if (known != paths_.rend()) return static_cast<uint32_t>(paths_.rend() - known - 1);
  paths_.push_back(path);
  return static_cast<uint32_t>(paths_.size() - 1);
}

size_t RunEvents::count() const {
  MutexLock lock(mutex_);
  return curves_.size() + media_.size();
}

NewestScalar RunEvents::newest() const {
  MutexLock lock(mutex_);
  NewestScalar newest;
  for (const auto& [tag, curve] : curves_) {
    if (curve.samples().empty()) continue;
    const CurveSample& last = curve.samples().back();
    newest.step = std::max(newest.step.value_or(last.step), last.step);
    newest.time = std::max(newest.time, last.time);
  }
  return newest;
}

std::vector<CurveFacts> RunEvents::curves() const {
  MutexLock lock(mutex_);
  std::vector<CurveFacts> all;
  for (const auto& [tag, curve] : curves_) {
    if (curve.samples().empty()) continue;
    all.push_back({tag, curve.samples().size(), curve.added(), curve.is_thinned(), curve.samples().front(),
                   curve.samples().back()});
  }
  return all;
}

std::map<uint32_t, MediaSeries> RunEvents::media(MediaKind kind) const {
  MutexLock lock(mutex_);
  std::map<uint32_t, MediaSeries> all;
  for (const auto& [key, series] : media_) {
    if (key.first == kind && !series.places.empty()) all[key.second] = {{series.places.back()}, series.added};
  }
  return all;
}

std::optional<RunEvents::Drawn> RunEvents::draw(uint32_t tag, int64_t from, int64_t to, size_t most,
                                                double smoothing) const {
  MutexLock lock(mutex_);
  const auto curve = curves_.find(tag);
  if (curve == curves_.end()) return std::nullopt;
  const std::vector<CurveSample>& samples = curve->second.samples();
  Drawn drawn{.raw = to_be_drawn(samples, from, to, most), .kept = samples.size()};
  if (smoothing > 0) drawn.smooth = to_be_drawn(smoothed(samples, smoothing), from, to, most);
  return drawn;
}

std::vector<MediaPlace> RunEvents::places(MediaKind kind, uint32_t tag) const {
  MutexLock lock(mutex_);
  const auto found = media_.find({kind, tag});
  return found != media_.end() ? found->second.places : std::vector<MediaPlace>();
}

proto::Summary::Value RunEvents::value_at(const MediaPlace& place) const {
  std::string path;
  {
    MutexLock lock(mutex_);
    path = paths_.at(place.file);
  }
  const proto::Event event = event_in(files_, {path, place.offset});
  const auto value = static_cast<int>(place.value);
  if (event.step() != place.step || value >= event.summary().value_size()) {
    throw NotFoundError(fmt::format("{} has something else at {} by now", path, place.offset));
  }
  return event.summary().value(value);
}

std::vector<std::pair<int64_t, double>> RunEvents::starts() const {
  MutexLock lock(mutex_);
  return starts_;
}

std::vector<std::string> RunEvents::problems() const {
  MutexLock lock(mutex_);
  std::vector<std::string> all = problems_;
  if (left_out_ > 0) {
    all.push_back(
        fmt::format("{} values are left out: a board keeps {} tags of {} bytes at most, and one more is \"{}\"",
                    left_out_, kMostTags, kMostTagBytes, shown(left_out_tag_)));
  }
  for (const auto& [tag, curve] : curves_) {
    if (!curve.is_thinned()) continue;
    all.push_back(
        fmt::format("curves are thinned out, of which each stretch has its least and largest value: a curve has {} "
                    "points at most, all together {}",
                    LongCurve::kMostSamples, kMostSamplesOfAll));
    break;
  }
  return all;
}

}  // namespace longhaul::console
