#include "longhaul/io/lock/owner_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>

namespace longhaul {
namespace {

constexpr size_t kMostBytes = 4096;
constexpr std::string_view kFirstLine = "longhaul owner 1";
constexpr size_t kTokenDigits = 32;
constexpr double kLatestTime = 253402300799;  // the end of the year 9999

// Takes the lines off a text, each by its key.
class Lines {
 public:
  Lines(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::string_view line() {
    const size_t end = text_.find('\n');
    if (end == text_.npos) throw DamagedOwnerError(fmt::format("{}: a line is missing or incomplete", path_));
    const std::string_view line = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return line;
  }
  std::string_view value(std::string_view key) {
    const std::string_view whole = line();
    if (!whole.starts_with(key) || whole.substr(key.size(), 1) != " ") fail(whole);
    return whole.substr(key.size() + 1);
  }
  template <typename Number>
  Number number(std::string_view key) {
    const std::string_view text = value(key);
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) fail(text);
    return number;
  }
  double time(std::string_view key) {
    const double seconds = number<double>(key);
    if (!(seconds >= 0 && seconds <= kLatestTime)) fail(key);
    return seconds;
  }
  void expect_end() const {
    if (!text_.empty()) fail(text_);
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw DamagedOwnerError(fmt::format("{}: unexpected \"{}\" in an owner record", path_, what));
  }

 private:
  std::string_view text_;
  const std::string& path_;
};

bool is_token(std::string_view text) {
  return text.size() == kTokenDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// On one line, whatever the system calls itself.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = '?';
  }
  return text;
}

std::string utc(double seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

}  // namespace

bool is_owner_limit(double seconds) {
  return seconds > 0 && std::isfinite(seconds);
}

std::string owner_path(const std::string& directory) {
  return join_path(directory, "chief.owner");
}

std::string format_owner(const OwnerRecord& owner) {
  const ProcessIdentity& process = owner.process;
  return fmt::format(
      "{}\ntoken {}\nhost {}\nboot {}\nnamespace {}\nprocess {}\nstarted {}\nflock {}\nlimit {}\nsince {:.3f}\n"
      "heartbeat {:.3f}\n",
      kFirstLine, owner.token, one_line(process.host), one_line(process.boot_id), one_line(process.pid_namespace),
      process.pid, process.start_time, owner.has_flock ? "held" : "none", owner.limit, owner.since, owner.heartbeat);
}

OwnerRecord parse_owner(const std::string& text, const std::string& path) {
  Lines lines(text, path);
  if (const std::string_view first = lines.line(); first != kFirstLine) lines.fail(first);
  OwnerRecord owner;
  owner.token = lines.value("token");
  if (!is_token(owner.token)) lines.fail(owner.token);
  owner.process.host = lines.value("host");
  owner.process.boot_id = lines.value("boot");
  owner.process.pid_namespace = lines.value("namespace");
  owner.process.pid = lines.number<int64_t>("process");
  owner.process.start_time = lines.number<uint64_t>("started");
  const std::string_view flock = lines.value("flock");
  if (flock != "held" && flock != "none") lines.fail(flock);
  owner.has_flock = flock == "held";
  owner.limit = lines.number<double>("limit");
  if (!is_owner_limit(owner.limit)) lines.fail("limit");
  owner.since = lines.time("since");
  owner.heartbeat = lines.time("heartbeat");
  lines.expect_end();
  return owner;
}

void write_owner(FileSystem& files, const std::string& directory, const OwnerRecord& owner) {
  write_file_atomically(files, owner_path(directory), format_owner(owner));
}

std::optional<OwnerRecord> read_owner(FileSystem& files, const std::string& directory) {
  const std::string path = owner_path(directory);
  try {
    const auto file = files.open(path);
    std::string text(kMostBytes + 1, '\0');
    text.resize(file->read(0, text.data(), text.size()));
    if (text.size() > kMostBytes)
      throw DamagedOwnerError(fmt::format("{}: it has more than {} bytes", path, kMostBytes));
    return parse_owner(text, path);
  } catch (const NotFoundError&) {
    return std::nullopt;
  }
}

std::string describe(const OwnerRecord& owner) {
  return fmt::format("host {}, process {}, since {}, last heartbeat {}", owner.process.host, owner.process.pid,
                     utc(owner.since), utc(owner.heartbeat));
}

}  // namespace longhaul
