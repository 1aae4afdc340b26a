#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

struct EventListingOptions {
  std::string path{};  // a directory, or an event file
  std::string tag{};   // or a pattern of the shell's; empty: all tags, with their last values
  bool plots = false;  // draws scalars instead of listing them
  size_t last = 20;    // values that are listed, of each tag
};

// longhaul events: the tags with their last values; of tags that are named, the last values, or a plot. After a restart
// the values of steps that were made again replace the earlier ones, as TensorBoard has it; the files are then read
// twice. Of a plot memory holds at most some thousand points of each tag. Something is wrong if a file is damaged; what
// it has before the damage is listed. NotFoundError: no such path, or tag.
Report list_events(FileSystem& files, const EventListingOptions& options, double now, const Terminal& terminal);

// longhaul events --follow: calls say() with each new scalar whose tag is wanted, as text and JSON, from the moment of
// the call on, until it returns false. Also of files that do not exist yet.
void follow_events(FileSystem& files, const std::string& path, const std::string& tag,
                   const std::function<bool(const std::string& text, const Json& json)>& say);

}  // namespace longhaul::console
