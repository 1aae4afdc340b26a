#include "longhaul/train/reporting/event_lines_fixture.h"

#include <fmt/format.h>

namespace longhaul {

std::string describe(const proto::Event& event) {
  if (event.has_file_version()) return "version " + event.file_version();
  if (!event.graph_def().empty()) return "graph";
  if (!event.meta_graph_def().empty()) return "meta_graph";
  if (event.has_tagged_run_metadata()) return "run_metadata " + event.tagged_run_metadata().tag();
  if (event.has_summary()) {
    const auto& value = event.summary().value(0);
    return fmt::format("summary {}={:g} @{}", value.tag(), value.simple_value(), event.step());
  }
  if (!event.has_session_log()) return "?";
  const std::string status = proto::SessionLog::SessionStatus_Name(event.session_log().status());
  return event.step() == 0 ? status : fmt::format("{} {}", status, event.step());
}

std::vector<proto::Event> events_in_file(const std::string& path) {
  std::vector<proto::Event> events;
  EventReader reader(path);
  while (const auto event = reader.next()) events.push_back(*event);
  return events;
}

std::vector<proto::Event> events_in_directory(const std::string& directory) {
  std::vector<proto::Event> all;
  for (const std::string& path : event_files(directory)) {
    for (auto& event : events_in_file(path)) all.push_back(std::move(event));
  }
  return all;
}

std::vector<std::string> describe(const std::vector<proto::Event>& events) {
  std::vector<std::string> lines;
  for (const proto::Event& event : events) lines.push_back(describe(event));
  return lines;
}

}  // namespace longhaul
