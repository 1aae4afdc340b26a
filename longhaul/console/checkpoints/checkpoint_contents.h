#pragma once

#include <string>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

struct ContentsOptions {
  std::string path{};            // of a checkpoint, a directory, or a file of weights: open_tensors()
  std::string name{};            // a tensor's, or a pattern of the shell's for several ("*/weights"); empty: all
  bool with_statistics = false;  // reads the values of all that are listed
};

// longhaul show: the tensors in a table; a single one, named in full, with its statistics and a histogram. Memory holds
// a piece of a tensor at a time. NotFoundError: no such checkpoint or tensor; the message has the nearest name.
Report show_contents(FileSystem& files, const ContentsOptions& options, const Terminal& terminal,
                     const Progress& progress = {});

}  // namespace longhaul::console
