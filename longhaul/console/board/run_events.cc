#include "longhaul/console/board/run_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/size_text.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/proto/event.pb.h"

namespace longhaul::console {
namespace {

// Of a curve or of a tag's images, besides what grows: more than they take with the fewest points.
constexpr uint64_t kSeriesBytes = 640;

std::optional<MediaKind> media_kind(std::string_view kind) {
  if (kind == "histogram") return MediaKind::kHistogram;
  if (kind == "image") return MediaKind::kImage;
  if (kind == "text") return MediaKind::kText;
  return std::nullopt;
}

uint64_t bytes_of(const MediaSeries& series) {
  return series.places.capacity() * sizeof(MediaPlace);
}

void keep_every_second(std::vector<MediaPlace>& places) {
  size_t kept = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (i % 2 == 0 || i + 1 == places.size()) places[kept++] = places[i];
  }
  places.resize(kept);
}

}  // namespace

RunEvents::RunEvents(FileSystem& files, std::string directory, TagNames& tags, KeptMemory& kept)
    : files_(files), directory_(std::move(directory)), tags_(tags), kept_(kept), event_files_(files_, directory_) {}

RunEvents::~RunEvents() {
  MutexLock lock(mutex_);
  kept_.remove(bytes_);
}

void RunEvents::account(uint64_t before, uint64_t after) {
  bytes_ += after - before;  // which may be negative: modulo 2^64
  kept_.add(after - before);
}

// nullptr: there is no room for another one.
template <typename Key, typename Series>
Series* RunEvents::series(std::map<Key, Series>& all, const Key& key) {
  const auto known = all.find(key);
  if (known != all.end()) return &known->second;
  if (kept_.is_full() && !kept_.can_shorten()) {
    ++without_room_;
    return nullptr;
  }
  account(0, kSeriesBytes);
  return &all[key];
}

bool RunEvents::read(const std::function<bool()>& go_on) {
  const RunFiles::End end = event_files_.read([&](const proto::Event& event, const EventPlace& place) {
    {
      MutexLock lock(mutex_);
      apply(event, place);
    }
    const bool needs_room = kept_.is_full() && kept_.can_shorten();
    return !needs_room && go_on();
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
    end_step_ = std::max(end_step_, value.step < std::numeric_limits<int64_t>::max() ? value.step + 1 : value.step);
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
  LongCurve* curve = series(curves_, tag);
  if (curve == nullptr) return;
  const uint64_t before = curve->bytes();
  curve->add(sample, kept_.most_points());
  account(before, curve->bytes());
}

void RunEvents::add_media(MediaKind kind, uint32_t tag, const MediaPlace& place) {
  MediaSeries* found = series(media_, {kind, tag});
  if (found == nullptr) return;
  std::vector<MediaPlace>& places = found->places;
  const uint64_t before = bytes_of(*found);
  while (!places.empty() && places.back().step >= place.step) places.pop_back();
  if (places.size() >= std::min(kMostPlaces, kept_.most_points())) keep_every_second(places);
  places.push_back(place);
  ++found->added;
  account(before, bytes_of(*found));
}

// As TensorBoard has it: what a run made from that step on, and no checkpoint had.
void RunEvents::begin_again(int64_t step, double time) {
  if (starts_.size() < kMostStarts) starts_.emplace_back(step, time);
  if (step >= end_step_) return;  // as most often, however many times a training starts
  end_step_ = step;
  for (auto& [tag, curve] : curves_) curve.begin_again(step);
  for (auto& [key, series] : media_) {
    std::erase_if(series.places, [&](const MediaPlace& place) { return place.step >= step; });
  }
}

void RunEvents::shorten() {
  MutexLock lock(mutex_);
  for (auto& [tag, curve] : curves_) {
    const uint64_t before = curve.bytes();
    curve.thin_to(kept_.most_points());
    account(before, curve.bytes());
  }
  for (auto& [key, each] : media_) {
    const uint64_t before = bytes_of(each);
    while (each.places.size() > kept_.most_points()) keep_every_second(each.places);
    each.places.shrink_to_fit();
    account(before, bytes_of(each));
  }
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
  if (without_room_ > 0) {
    all.push_back(
        fmt::format("{} values are left out: there is no room for a further curve, since a board keeps {} at most",
                    without_room_, size_text(kept_.most_bytes())));
  }
  const bool is_thinned =
      std::any_of(curves_.begin(), curves_.end(), [](const auto& each) { return each.second.is_thinned(); });
  if (is_thinned) {
    all.push_back(
        fmt::format("curves are thinned out, of which each stretch has its least and largest value: a curve "
                    "has {} points at most, less once all runs together take {}",
                    LongCurve::kMostSamples, size_text(kept_.most_bytes())));
  }
  return all;
}

}  // namespace longhaul::console
