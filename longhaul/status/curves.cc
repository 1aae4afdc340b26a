#include "longhaul/status/curves.h"

#include <algorithm>
#include <utility>

namespace longhaul {
namespace {

static_assert(Curves::kMostPoints % 2 == 0);

void thin_out(std::vector<CurvePoint>& points) {
  size_t kept = 0;
  for (size_t i = 0; i < points.size(); i += 2) points[kept++] = points[i];
  points.resize(kept);
}

}  // namespace

void Curves::note(std::string_view tag, double value, int64_t step) {
  const CurvePoint point{step, value};
  MutexLock lock(mutex_);
  auto found = curves_.find(tag);
  if (found == curves_.end()) {
    if (curves_.size() >= kMostTags || tag.size() > kMostTagBytes) {
      ++refused_;
      return;
    }
    found = curves_.emplace(std::string(tag), Curve()).first;
    found->second.points.reserve(kMostPoints);
  }
  Curve& curve = found->second;
  while (!curve.points.empty() && curve.points.back().step >= step) curve.points.pop_back();
  if (curve.points.empty()) curve.since = curve.every;
  curve.newest = point;
  if (++curve.since < curve.every) return;
  curve.since = 0;
  curve.points.push_back(point);
  if (curve.points.size() < kMostPoints) return;
  thin_out(curve.points);
  curve.since = curve.every;  // the newest is left out
  curve.every *= 2;
}

std::map<std::string, std::vector<CurvePoint>> Curves::points() const {
  std::map<std::string, std::vector<CurvePoint>> all;
  MutexLock lock(mutex_);
  for (const auto& [tag, curve] : curves_) {
    auto& points = all[tag] = curve.points;
    if (points.empty() || points.back().step != curve.newest.step) points.push_back(curve.newest);
  }
  return all;
}

std::map<std::string, CurvePoint> Curves::newest() const {
  std::map<std::string, CurvePoint> all;
  MutexLock lock(mutex_);
  for (const auto& [tag, curve] : curves_) all.emplace(tag, curve.newest);
  return all;
}

int64_t Curves::refused_tags() const {
  MutexLock lock(mutex_);
  return refused_;
}

}  // namespace longhaul
