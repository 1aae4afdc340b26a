#pragma once

#include <functional>
#include <string>
#include <vector>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

// Something that this machine can or cannot do.
struct MachineFinding {
  enum class State { kGood, kNote, kBad };  // kNote: it works, but slower or with less
  std::string subject{};                    // "io_uring"
  State state = State::kGood;
  std::string here{};    // what it is here
  std::string wanted{};  // what the library wants
  std::string remedy{};  // empty: there is nothing to do
};

// What the kernel and the limits of this process allow: io_uring, huge pages, clock, processors, threads, memory, open
// files. `root`: where /proc and /sys are found; tests use their own trees.
std::vector<MachineFinding> machine_findings(const std::string& root = "/");

// What a directory is good for: its file system and the room there. With `probes`, also whether locks, hard links and
// renames work, whose clock its times have, and how fast a file of 64 MB is written to the disk; the files for that are
// removed. An error is a finding.
std::vector<MachineFinding> directory_findings(FileSystem& files, const std::string& directory, bool probes);

// What the program `longhaul-torch` says of libtorch. It is another program, so that this one starts without libtorch.
// `output`: its lines "key value"; `problem`: why there are none.
std::vector<MachineFinding> torch_findings(const std::string& output, const std::string& problem);

// longhaul doctor: a line for each finding, with the remedy below. Something is wrong if a finding is bad.
Report report_machine(const std::vector<MachineFinding>& findings, const Terminal& terminal);

}  // namespace longhaul::console
