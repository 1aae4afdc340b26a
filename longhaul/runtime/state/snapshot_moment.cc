#include "longhaul/runtime/state/snapshot_moment.h"

namespace longhaul {
namespace {

thread_local SnapshotMoment* moment_of_this_thread = nullptr;

}  // namespace

SnapshotMoment::Reading::Reading(SnapshotMoment& moment) {
  moment_of_this_thread = &moment;
}

SnapshotMoment::Reading::~Reading() {
  moment_of_this_thread = nullptr;
}

SnapshotMoment* SnapshotMoment::of_this_thread() {
  return moment_of_this_thread;
}

SnapshotMoment::Rest* SnapshotMoment::find(const void* owner) const {
  for (const auto& [whose, rest] : rests_) {
    if (whose == owner) return rest.get();
  }
  return nullptr;
}

void SnapshotMoment::close() {
  for (const auto& [owner, rest] : rests_) rest->close();
}

bool SnapshotMoment::complete() {
  bool all = true;
  for (const auto& [owner, rest] : rests_) all &= rest->complete();
  return all;
}

}  // namespace longhaul
