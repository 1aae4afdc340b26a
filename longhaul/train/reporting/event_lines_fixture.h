#pragma once

#include <string>
#include <vector>

#include "longhaul/events/event_reader.h"

namespace longhaul {

// An event in a line: "graph", "START 123", "summary v=1 @5".
std::string describe(const proto::Event& event);
std::vector<std::string> describe(const std::vector<proto::Event>& events);

std::vector<proto::Event> events_in_file(const std::string& path);
std::vector<proto::Event> events_in_directory(const std::string& directory);  // of all its files, in order

}  // namespace longhaul
