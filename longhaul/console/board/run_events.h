#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/console/board/kept_memory.h"
#include "longhaul/console/board/long_curve.h"
#include "longhaul/console/board/run_files.h"
#include "longhaul/console/board/tag_names.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

enum class MediaKind { kHistogram, kImage, kText };

// Where an image, a histogram or a text stands, which is read when it is asked for.
struct MediaPlace {
  int64_t step = 0;
  double time = 0;
  uint64_t offset = 0;  // of its event
  uint32_t file = 0;
  uint32_t value = 0;  // in the event's summary
};

// Of many every second one is left out, then every second of the rest, and so on; the newest is always there.
struct MediaSeries {
  std::vector<MediaPlace> places{};
  uint64_t added = 0;
};

// A curve as it is listed.
struct CurveFacts {
  uint32_t tag = 0;
  size_t kept = 0;
  uint64_t added = 0;
  bool is_thinned = false;
  CurveSample first{}, last{};
};

// Of all curves of a run.
struct NewestScalar {
  std::optional<int64_t> step{};
  double time = 0;
};

// What the board keeps of the event files of a run: scalars, and where the rest stands. One thread reads; any thread
// may ask.
class RunEvents {
 public:
  // `kept`: of all runs together.
  RunEvents(FileSystem& files, std::string directory, TagNames& tags, KeptMemory& kept);
  ~RunEvents();
  RunEvents(const RunEvents&) = delete;

  // What was written since the last call, as long as there is room. `go_on`: asked often; false ends it at once.
  // Returns whether a file was replaced, so that all is to be read anew. Errors of the directory.
  bool read(const std::function<bool()>& go_on) EXCLUDES(mutex_);
  void shorten() EXCLUDES(mutex_);  // what is longer than it may be by now

  size_t count() const EXCLUDES(mutex_);  // of curves, and of tags with images and the like
  NewestScalar newest() const EXCLUDES(mutex_);
  std::vector<CurveFacts> curves() const EXCLUDES(mutex_);
  std::map<uint32_t, MediaSeries> media(MediaKind kind) const EXCLUDES(mutex_);  // by tag, without their places
  // `smoothing`: 0 to 1.
  struct Drawn {
    std::vector<CurveSample> raw{}, smooth{};
    size_t kept = 0;
  };
  std::optional<Drawn> draw(uint32_t tag, int64_t from, int64_t to, size_t most, double smoothing) const
      EXCLUDES(mutex_);
  std::vector<MediaPlace> places(MediaKind kind, uint32_t tag) const EXCLUDES(mutex_);
  // What stands there now. Errors of event_in(); NotFoundError: it is something else.
  proto::Summary::Value value_at(const MediaPlace& place) const EXCLUDES(mutex_);

  std::vector<std::pair<int64_t, double>> starts() const EXCLUDES(mutex_);  // steps and times
  std::vector<std::string> problems() const EXCLUDES(mutex_);
  bool is_read() const { return is_read_; }  // to its end, once at least

 private:
  void apply(const proto::Event& event, const EventPlace& place) REQUIRES(mutex_);
  void add_scalar(uint32_t tag, const CurveSample& sample) REQUIRES(mutex_);
  void add_media(MediaKind kind, uint32_t tag, const MediaPlace& place) REQUIRES(mutex_);
  void begin_again(int64_t step, double time) REQUIRES(mutex_);
  template <typename Key, typename Series>
  Series* series(std::map<Key, Series>& all, const Key& key) REQUIRES(mutex_);
  void account(uint64_t before, uint64_t after) REQUIRES(mutex_);
  uint32_t file_number(const std::string& path) REQUIRES(mutex_);

  FileSystem& files_;
  const std::string directory_;
  TagNames& tags_;
  KeptMemory& kept_;
  RunFiles event_files_;  // of the thread that reads
  std::atomic<bool> is_read_{false};

  mutable Mutex mutex_;
  std::map<uint32_t, LongCurve> curves_ GUARDED_BY(mutex_);
  std::map<std::pair<MediaKind, uint32_t>, MediaSeries> media_ GUARDED_BY(mutex_);
  std::vector<std::string> paths_ GUARDED_BY(mutex_);
  std::vector<std::pair<int64_t, double>> starts_ GUARDED_BY(mutex_);
  std::vector<std::string> problems_ GUARDED_BY(mutex_);
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;  // of what is kept
  // From this step on nothing is kept.
  int64_t end_step_ GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::min();
  uint64_t without_room_ GUARDED_BY(mutex_) = 0;   // values for which there was none
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;       // values of tags that are not kept
  std::string left_out_tag_ GUARDED_BY(mutex_){};  // the first such tag
};

}  // namespace longhaul::console
