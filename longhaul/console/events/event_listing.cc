#include "longhaul/console/events/event_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/console/events/event_values.h"
#include "longhaul/console/text/plot.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/table.h"
#include "longhaul/console/text/times.h"
#include "longhaul/io/files/directory_watch.h"

namespace longhaul::console {
namespace {

constexpr size_t kMostPoints = 8192;  // of a plot; beyond that, every second one is dropped
constexpr size_t kPlotRows = 12;
constexpr Seconds kBetweenLooks{2};  // of --follow, where the file system tells of no changes

// All that is kept of a tag.
struct TagRecord {
  std::string kind{};
  uint64_t count = 0;
  int64_t first_step = 0;
  EventValue last{};
  std::deque<EventValue> values{};                  // the last ones
  std::vector<std::pair<double, double>> points{};  // of a scalar: step and number
  uint64_t stride = 1;                              // of the scalars, each so many is a point
};

// Of the values that stand: those of steps that a later run made again do not.
class TagRecords {
 public:
  // `restarts`: those that the files have, as an earlier reading of them found. Only with all of them it is known of a
  // value whether it stands.
  TagRecords(const EventListingOptions& options, const std::vector<int64_t>& restarts)
      : options_(options), lowest_to_come_(restarts) {
    for (size_t i = lowest_to_come_.size(); i > 1; --i) {
      lowest_to_come_[i - 2] = std::min(lowest_to_come_[i - 2], lowest_to_come_[i - 1]);
    }
  }

  void add(const EventValue& value) {
    if (std::string_view(value.kind) == "start") return begin_again(value.step);
    if (!is_wanted_tag(value.tag, options_.tag)) return;
    highest_ = std::max(highest_, value.step);
    if (is_made_again(value.step)) return;
    TagRecord& record = records_[value.tag];
    if (record.count++ == 0) record.first_step = value.step;
    record.kind = value.kind;
    record.last = value;
    if (options_.tag.empty()) record.last.whole.clear();  // of all tags it would be too much
    if (!options_.tag.empty()) {
      record.values.push_back(value);
      if (record.values.size() > options_.last) record.values.pop_front();
    }
    if (options_.plots && value.number && record.count % record.stride == 0) add_point(record, value);
  }

  const std::map<std::string, TagRecord>& all() const { return records_; }
  // The steps at which runs began, of those that made steps again.
  const std::vector<int64_t>& restarts() const { return restarts_; }

 private:
  static void add_point(TagRecord& record, const EventValue& value) {
    record.points.emplace_back(static_cast<double>(value.step), *value.number);
    if (record.points.size() < kMostPoints) return;
    size_t kept = 0;
    for (size_t i = 0; i < record.points.size(); i += 2) record.points[kept++] = record.points[i];
    record.points.resize(kept);
    record.stride *= 2;
  }

  void begin_again(int64_t step) {
    if (step <= highest_) restarts_.push_back(step);
  }

  bool is_made_again(int64_t step) const {
    const size_t next = restarts_.size();
    return next < lowest_to_come_.size() && step >= lowest_to_come_[next];
  }

  const EventListingOptions& options_;
  std::vector<int64_t> lowest_to_come_;  // for each restart, the lowest step of it and the later ones
  std::vector<int64_t> restarts_;
  int64_t highest_ = std::numeric_limits<int64_t>::min();  // step
  std::map<std::string, TagRecord> records_;
};

struct ReadEvents {
  EventFiles files;
  TagRecords records;
};

// Again if runs made steps again, or do so meanwhile: memory does not hold all values until their restart comes.
ReadEvents read_events(FileSystem& files, const EventListingOptions& options) {
  std::vector<int64_t> restarts;
  while (true) {
    ReadEvents read{EventFiles(files, options.path), TagRecords(options, restarts)};
    read.files.read([&](const EventValue& value) { read.records.add(value); });
    if (read.records.restarts() == restarts) return read;
    restarts = read.records.restarts();
  }
}

Json to_json(const EventValue& value) {
  Json json = {{"step", value.step}, {"time", value.time}};
  if (value.number) {
    json["value"] = *value.number;
  } else {
    json["text"] = value.whole.empty() ? value.text : value.whole;
  }
  return json;
}

// Made fit for a terminal, line by line; each ends with a line break.
std::string all_lines(const std::string& text) {
  constexpr size_t kMostOfLine = 1000;
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) all += shown(line, kMostOfLine) + "\n";
  return all;
}

void list_tags(const TagRecords& records, double now, const Terminal& terminal, Report& report) {
  Table table({{"tag"}, {"kind"}, {"values", Align::kRight}, {"steps", Align::kRight}, {"last"}, {"", Align::kRight}});
  for (const auto& [tag, record] : records.all()) {
    table.add({tag, record.kind, std::to_string(record.count),
               fmt::format("{} to {}", record.first_step, record.last.step), record.last.text,
               age_text(record.last.time, now)});
    report.json["tags"].push_back({{"tag", tag},
                                   {"kind", record.kind},
                                   {"count", record.count},
                                   {"first_step", record.first_step},
                                   {"last", to_json(record.last)}});
  }
  report.text += table.text(terminal);
}

void list_values(const TagRecords& records, const Terminal& terminal, Report& report) {
  for (const auto& [tag, record] : records.all()) {
    Json values = Json::array();
    Table table({{"step", Align::kRight}, {"time"}, {"value", Align::kRight}});
    for (const EventValue& value : record.values) {
      table.add({std::to_string(value.step), utc_text(value.time), value.text});
      values.push_back(to_json(value));
    }
    report.text +=
        fmt::format("{} ({}, {} in all)\n", painted(shown(tag), Paint::kBold, terminal), record.kind, record.count) +
        table.text(terminal);
    if (!record.last.whole.empty())
      report.text += fmt::format("The last one, of step {}:\n{}", record.last.step, all_lines(record.last.whole));
    report.json["tags"].push_back(
        {{"tag", tag}, {"kind", record.kind}, {"count", record.count}, {"values", std::move(values)}});
  }
}

void plot_tags(const TagRecords& records, const Terminal& terminal, Report& report) {
  for (const auto& [tag, record] : records.all()) {
    std::vector<std::pair<double, double>> points = record.points;
    if (record.last.number) points.emplace_back(static_cast<double>(record.last.step), *record.last.number);
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::string plot = plot_text(points, kPlotRows, terminal);
    if (plot.empty()) continue;
    report.text += painted(shown(tag), Paint::kBold, terminal) + "\n" + plot;
    report.json["tags"].push_back({{"tag", tag}, {"kind", record.kind}, {"points", points}});
  }
}

// Changes of a directory's files since the last wait.
class EventNews {
 public:
  explicit EventNews(const std::string& directory)
      : watch_(directory, [this](const DirectoryChange&) { add(); }, DirectoryWatch::Notices::kWrites) {}

  void wait() EXCLUDES(mutex_) {
    Clock& clock = Clock::real();
    const Seconds end = clock.now() + kBetweenLooks;
    MutexLock lock(mutex_);
    // wait: polls: a file server does not tell of what other machines write
    while (!has_some_ && clock.now() < end) clock.wait_until(changed_, mutex_, end);
    has_some_ = false;
  }

 private:
  void add() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    has_some_ = true;
    changed_.notify_all();
  }

  Mutex mutex_;
  CondVar changed_;
  bool has_some_ GUARDED_BY(mutex_) = false;
  DirectoryWatch watch_;  // its thread uses the others
};

}  // namespace

Report list_events(FileSystem& files, const EventListingOptions& options, double now, const Terminal& terminal) {
  const ReadEvents read = read_events(files, options);
  const auto& [event_files, records] = read;
  if (records.all().empty() && !options.tag.empty()) {
    throw NotFoundError(fmt::format("no event in {} has the tag {}", options.path, options.tag));
  }
  Report report{.json = json_of("events")};
  report.json["path"] = options.path;
  report.json["files"] = event_files.count();
  report.json["tags"] = Json::array();
  if (options.plots) {
    plot_tags(records, terminal, report);
  } else if (options.tag.empty()) {
    list_tags(records, now, terminal, report);
  } else {
    list_values(records, terminal, report);
  }
  if (records.all().empty()) report.text += fmt::format("no values in {} event files\n", event_files.count());
  for (const std::string& problem : event_files.problems()) {
    report.text += painted("wrong: " + shown(problem, 1000), Paint::kRed, terminal) + "\n";
  }
  report.json["problems"] = event_files.problems();
  report.is_fine = event_files.problems().empty();
  return report;
}

void follow_events(FileSystem& files, const std::string& path, const std::string& tag,
                   const std::function<bool(const std::string& text, const Json& json)>& say) {
  EventFiles event_files(files, path);
  EventNews news(files.is_directory(path) ? path : directory_name(path));
  bool is_over = false, is_new = false;
  size_t problems = 0;
  while (!is_over) {
    event_files.read([&](const EventValue& value) {
      const bool is_start = std::string_view(value.kind) == "start";
      if (!is_new || is_over || is_start || !is_wanted_tag(value.tag, tag)) return;
      Json json = json_of("events");
      json["tag"] = value.tag;
      json.update(to_json(value));
      const std::string text = value.whole.empty() ? shown(value.text) : "\n" + all_lines(value.whole);
      is_over = !say(fmt::format("{}  step {}  {} {}", utc_text(value.time), value.step, shown(value.tag), text), json);
    });
    is_new = true;
    for (; problems < event_files.problems().size(); ++problems) {
      const std::string& problem = event_files.problems()[problems];
      Json json = json_of("events");
      json["problem"] = problem;
      is_over = !say("wrong: " + shown(problem, 1000), json) || is_over;
    }
    if (!is_over) news.wait();
  }
}

}  // namespace longhaul::console
