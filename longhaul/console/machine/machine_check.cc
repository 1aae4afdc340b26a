#include "longhaul/console/machine/machine_check.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/size_text.h"
#include "longhaul/console/text/kernel_text.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/times.h"
#include "longhaul/io/direct/io_queue.h"
#include "longhaul/io/process/process_limits.h"

namespace longhaul::console {
namespace {

using State = MachineFinding::State;

// The first line of a file of the kernel's; empty: it is not there.
std::string line_of(const std::string& path) {
  const std::string text = kernel_text(path);
  return text.substr(0, text.find('\n'));
}

MachineFinding uring() {
  MachineFinding finding{
      .subject = "io_uring", .here = "available", .wanted = "available: checkpoints at the disk's speed"};
  if (make_uring_queue(1) != nullptr) return finding;
  finding.state = State::kNote;
  finding.here = "refused by the kernel or the container; threads are used instead";
  finding.remedy = "allow io_uring_setup and io_uring_enter in the seccomp profile, and kernel.io_uring_disabled=0";
  return finding;
}

// "always [madvise] never": the one in brackets.
std::string chosen_of(const std::string& line) {
  const size_t begin = line.find('['), end = line.find(']');
  return begin == line.npos || end == line.npos || end < begin ? "" : line.substr(begin + 1, end - begin - 1);
}

MachineFinding huge_pages(const std::string& root) {
  const std::string mode = chosen_of(line_of(root + "sys/kernel/mm/transparent_hugepage/enabled"));
  MachineFinding finding{
      .subject = "huge pages", .here = mode, .wanted = "madvise or always: faster saves and restores"};
  if (mode == "madvise" || mode == "always") return finding;
  finding.state = State::kNote;
  if (mode.empty()) finding.here = "not known";
  finding.remedy = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root";
  return finding;
}

MachineFinding clock_source(const std::string& root) {
  const std::string source = line_of(root + "sys/devices/system/clocksource/clocksource0/current_clocksource");
  MachineFinding finding{
      .subject = "clock source", .here = source, .wanted = "one that needs no system call, such as tsc"};
  if (source.empty()) finding.here = "not known";
  if (source != "hpet" && source != "acpi_pm" && source != "jiffies" && source != "refined-jiffies") return finding;
  finding.state = State::kNote;
  finding.remedy = "look for \"clocksource\" in dmesg: the kernel found the processor's clock unstable";
  return finding;
}

MachineFinding clock_discipline() {
  timex state{};
  const bool is_synchronised = ::adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
  MachineFinding finding{.subject = "time",
                         .here = is_synchronised ? "synchronised" : "not synchronised, as far as the kernel knows",
                         .wanted = "synchronised, for the journal and the ages of checkpoints"};
  if (is_synchronised) return finding;
  finding.state = State::kNote;
  finding.remedy = "run an NTP client (chrony, systemd-timesyncd); in a container, on its host";
  return finding;
}

MachineFinding processors(const std::string& root) {
  const int usable = usable_processors(root);
  const unsigned all = std::thread::hardware_concurrency();
  MachineFinding finding{.subject = "processors",
                         .here = fmt::format("{} of {}", usable, all),
                         .wanted = "2 at least: saves and summaries have threads of their own"};
  if (usable >= 2) return finding;
  finding.state = State::kNote;
  finding.remedy = "raise the quota of the control group, or the affinity (taskset, --cpus-per-task)";
  return finding;
}

MachineFinding memory(const std::string& root) {
  const auto limit = memory_limit(root);
  std::string available = "not known";
  std::istringstream lines(kernel_text(root + "proc/meminfo"));
  for (std::string key, unit; lines >> key;) {
    uint64_t kilobytes = 0;
    lines >> kilobytes;
    std::getline(lines, unit);
    if (key == "MemAvailable:") available = size_text(kilobytes * 1024);
  }
  return {.subject = "memory",
          .here = fmt::format("{} available{}", available, limit ? ", limit " + size_text(*limit) : std::string()),
          .wanted = "twice the model: a snapshot of a libtorch module is a copy"};
}

MachineFinding open_files() {
  constexpr rlim_t kFewest = 1024;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const bool is_unlimited = limit.rlim_cur == RLIM_INFINITY;
  MachineFinding finding{.subject = "open files",
                         .here = is_unlimited ? "unlimited" : std::to_string(limit.rlim_cur),
                         .wanted = "1024 at least"};
  if (is_unlimited || limit.rlim_cur >= kFewest) return finding;
  finding.state = State::kBad;
  finding.remedy = "ulimit -n 65536 before the program, or LimitNOFILE= of its service";
  return finding;
}

MachineFinding threads(const std::string& root) {
  constexpr uint64_t kFewest = 256;
  const auto of_group = thread_limit(root);
  rlimit of_user{};
  ::getrlimit(RLIMIT_NPROC, &of_user);
  uint64_t most = of_user.rlim_cur == RLIM_INFINITY ? UINT64_MAX : of_user.rlim_cur;
  if (of_group) most = std::min(most, *of_group);
  MachineFinding finding{.subject = "threads",
                         .here = most == UINT64_MAX ? "unlimited" : fmt::format("{} at most", most),
                         .wanted = "256 at least, for the library and libtorch"};
  if (most >= kFewest) return finding;
  finding.state = State::kBad;
  finding.remedy = "ulimit -u, or pids.max of the control group (docker run --pids-limit)";
  return finding;
}

MachineFinding room_in(FileSystem& files, const std::string& directory) {
  return {.subject = "room", .here = size_text(files.free_bytes(directory)) + " free", .wanted = "several checkpoints"};
}

// The mount point that is longest and contains the directory, of /proc/self/mounts: its file system's name.
std::string file_system_of(const std::string& directory) {
  char* const real = ::realpath(directory.c_str(), nullptr);
  const std::string path = real != nullptr ? real : directory;
  ::free(real);
  std::istringstream mounts(kernel_text("/proc/self/mounts", size_t{1} << 22));
  std::string name, longest;
  for (std::string line; std::getline(mounts, line);) {
    std::string device, mount, type;
    std::istringstream(line) >> device >> mount >> type;
    const bool contains = mount == "/" || path == mount || path.starts_with(mount + "/");
    if (!contains || mount.size() < longest.size()) continue;
    longest = mount;
    name = type;
  }
  return name;
}

MachineFinding file_system(const std::string& directory) {
  const std::string name = file_system_of(directory);
  MachineFinding finding{.subject = "file system",
                         .here = name.empty() ? "not known" : name,
                         .wanted = "one that survives the machine, and whose rename is atomic"};
  if (name == "tmpfs" || name == "ramfs") {
    finding.state = State::kBad;
    finding.remedy = "checkpoints there are lost with the machine: use a directory on a disk, or a mirror on one";
  } else if (name == "overlay") {
    finding.state = State::kNote;
    finding.remedy = "it is a container's own: what is not in a volume is lost with the container";
  } else if (name.starts_with("fuse") || name == "9p") {
    finding.state = State::kNote;
    finding.remedy = "a rename may copy, and a lock may not hold: run `longhaul doctor --probe DIR`";
  }
  return finding;
}

// Files of a probe, which are removed.
class Probe {
 public:
  Probe(FileSystem& files, const std::string& directory)
      : files_(files), path_(join_path(directory, fmt::format(".longhaul-doctor.{}", ::getpid()))) {}
  ~Probe() {
    for (const char* ending : {"", ".2", ".lock"}) {
      try {
        files_.remove(path_ + ending);
      } catch (const Error&) {
      }
    }
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  MachineFinding speed() {
    constexpr uint64_t kBytes = 64'000'000;
    const Seconds began = Clock::real().now();
    const std::string block(1 << 20, 'x');
    const auto file =
        files_.create_large(path_, {.if_exists = FileSystem::IfExists::kTruncate, .expected_bytes = kBytes});
    for (uint64_t written = 0; written < kBytes; written += block.size()) file->append(block);
    file->sync();
    file->close();
    const Seconds took = Clock::real().now() - began;
    return {.subject = "writing",
            .here = fmt::format("{}/s", size_text(static_cast<uint64_t>(static_cast<double>(kBytes) / took.count()))),
            .wanted = "as fast as the disk: a checkpoint takes its size by this"};
  }

  MachineFinding commit() {
    const Seconds began = Clock::real().now();
    written_at_ = Clock::real().wall_time();
    write_file_atomically(files_, path_, "x");
    const Seconds took = Clock::real().now() - began;
    constexpr Seconds kSlow{0.5};
    MachineFinding finding{.subject = "commit",
                           .here = fmt::format("{} to sync and rename a file", duration_text(took)),
                           .wanted = "some milliseconds"};
    if (took < kSlow) return finding;
    finding.state = State::kNote;
    finding.remedy = "the disk is busy or slow: save less often, or elsewhere";
    return finding;
  }

  MachineFinding links() {
    files_.link(path_, path_ + ".2");
    return {.subject = "hard links", .here = "work", .wanted = "work: a checkpoint is replaced safely"};
  }

  MachineFinding lock() {
    MachineFinding finding{.subject = "locks", .here = "work", .wanted = "work: one chief in a directory"};
    if (files_.try_lock(path_ + ".lock").outcome != FileLock::Outcome::kUnsupported) return finding;
    finding.state = State::kNote;
    finding.here = "not supported: heartbeats alone tell who the chief is";
    finding.remedy = "nothing, or another file system: a takeover waits until the heartbeat is old";
    return finding;
  }

  MachineFinding clock() {
    constexpr double kTolerated = 5;
    const double apart = files_.modified_at(path_) - written_at_;
    MachineFinding finding{.subject = "its clock",
                           .here = fmt::format("{:+.3f} s from this machine's", apart),
                           .wanted = "about the same time"};
    if (std::abs(apart) < kTolerated) return finding;
    finding.state = State::kNote;
    finding.remedy = "synchronise the file server's clock, or this machine's";
    return finding;
  }

 private:
  FileSystem& files_;
  const std::string path_;
  double written_at_ = 0;
};

// What fails is a finding too.
template <typename Look>
void add_or_blame(std::vector<MachineFinding>& findings, const char* subject, const Look& look) {
  try {
    findings.push_back(look());
  } catch (const Error& error) {
    findings.push_back({.subject = subject, .state = State::kBad, .here = error.what(), .wanted = "works"});
  }
}

const char* name_of(State state) {
  switch (state) {
    case State::kGood: return "good";
    case State::kNote: return "note";
    case State::kBad: return "bad";
  }
  return "";
}

Paint paint_of(State state) {
  switch (state) {
    case State::kGood: return Paint::kGreen;
    case State::kNote: return Paint::kYellow;
    case State::kBad: return Paint::kRed;
  }
  return Paint::kPlain;
}

}  // namespace

std::vector<MachineFinding> machine_findings(const std::string& root) {
  return {uring(),          huge_pages(root), clock_source(root), clock_discipline(),
          processors(root), memory(root),     threads(root),      open_files()};
}

std::vector<MachineFinding> directory_findings(FileSystem& files, const std::string& directory, bool probes) {
  std::vector<MachineFinding> findings;
  add_or_blame(findings, "file system", [&] { return file_system(directory); });
  add_or_blame(findings, "room", [&] { return room_in(files, directory); });
  if (!probes) return findings;
  Probe probe(files, directory);
  add_or_blame(findings, "writing", [&] { return probe.speed(); });
  add_or_blame(findings, "commit", [&] { return probe.commit(); });
  add_or_blame(findings, "its clock", [&] { return probe.clock(); });
  add_or_blame(findings, "hard links", [&] { return probe.links(); });
  add_or_blame(findings, "locks", [&] { return probe.lock(); });
  return findings;
}

std::vector<MachineFinding> torch_findings(const std::string& output, const std::string& problem) {
  if (!problem.empty()) {
    return {{.subject = "libtorch",
             .state = State::kNote,
             .here = problem,
             .wanted = "the program longhaul-torch, which is installed with longhaul",
             .remedy = "install it, if trainings run on this machine"}};
  }
  std::vector<MachineFinding> findings;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    if (space == line.npos) continue;
    findings.push_back({.subject = "libtorch " + line.substr(0, space), .here = line.substr(space + 1)});
  }
  return findings;
}

Report report_machine(const std::vector<MachineFinding>& findings, const Terminal& terminal) {
  constexpr size_t kIndent = 26;
  Report report{.json = json_of("doctor")};
  Json& all = report.json["findings"] = Json::array();
  for (const MachineFinding& finding : findings) {
    report.is_fine = report.is_fine && finding.state != State::kBad;
    report.text += fmt::format("{}  {:<18}  {}\n",
                               painted(fmt::format("{:<4}", name_of(finding.state)), paint_of(finding.state), terminal),
                               finding.subject, wrapped(shown(finding.here, 1000), kIndent, terminal.columns));
    const auto add = [&](const std::string& label, const std::string& text) {
      if (!text.empty())
        report.text += std::string(kIndent, ' ') + wrapped(label + text, kIndent, terminal.columns) + "\n";
    };
    if (finding.state != State::kGood) {
      add("wanted: ", finding.wanted);
      add("remedy: ", finding.remedy);
    }
    all.push_back({{"subject", finding.subject},
                   {"state", name_of(finding.state)},
                   {"here", finding.here},
                   {"wanted", finding.wanted},
                   {"remedy", finding.remedy}});
  }
  report.json["fine"] = report.is_fine;
  return report;
}

}  // namespace longhaul::console
