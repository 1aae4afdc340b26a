#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul {

// A file for what a part of the library prints.
class TemporaryOutput {
 public:
  TemporaryOutput() : file_(std::tmpfile()) {}
  ~TemporaryOutput() { std::fclose(file_); }
  TemporaryOutput(const TemporaryOutput&) = delete;
  TemporaryOutput& operator=(const TemporaryOutput&) = delete;

  std::FILE* file() const { return file_; }
  // The lines that are there, without their ends. Others may print meanwhile.
  std::vector<std::string> lines() const {
    char piece[4096];
    std::vector<std::string> lines(1);
    ssize_t size = 0;
    for (off_t at = 0; (size = ::pread(fileno(file_), piece, sizeof piece, at)) > 0; at += size) {
      for (const char c : std::string_view(piece, static_cast<size_t>(size)))
        c == '\n' ? static_cast<void>(lines.emplace_back()) : lines.back().push_back(c);
    }
    lines.pop_back();
    return lines;
  }

 private:
  std::FILE* const file_;
};

}  // namespace longhaul
