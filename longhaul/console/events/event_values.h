#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/events/event_reader.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

// A value of a summary, or a restart.
struct EventValue {
  std::string tag{};
  const char* kind = "tensor";  // scalar, histogram, image, audio, text, tensor; "start": a training began at `step`
  int64_t step = 0;
  double time = 0;                 // seconds since 1970
  std::optional<double> number{};  // of a scalar
  std::string text{};              // in short, for people
};

// The values of event files that may still grow, in the order of the files. One thread at a time.
class EventFiles {
 public:
  // `path`: an event file, or a directory with some. NotFoundError: there is nothing of that name.
  EventFiles(FileSystem& files, std::string path);

  // Calls use() with what was written since the last call, in new files too. A file that cannot be read on is left, and
  // becomes a problem; one that is deleted meanwhile does not.
  void read(const std::function<void(const EventValue&)>& use);

  size_t count() const { return readers_.size(); }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> paths() const;
  void read_file(const std::string& path, const std::function<void(const EventValue&)>& use);

  FileSystem& files_;
  const std::string path_;
  std::map<std::string, std::unique_ptr<EventReader>> readers_;  // null: it is not read any more
  std::vector<std::string> problems_;
};

// Whether a tag is meant by a name or a pattern of the shell's ("train/*"); empty: each is.
bool is_wanted_tag(const std::string& tag, const std::string& wanted);

}  // namespace longhaul::console
