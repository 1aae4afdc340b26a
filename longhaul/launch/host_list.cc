#include "longhaul/launch/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"

namespace longhaul {
namespace {

constexpr size_t kLongestList = 1 << 20;
constexpr size_t kLongestHostName = 253;
constexpr size_t kMostDigits = 9;

// Reads a list from the front.
class ListReader {
 public:
  explicit ListReader(std::string_view text) : text_(text) {
    if (text.size() > kLongestList) refuse(fmt::format("it has {} bytes; {} are the most", text.size(), kLongestList));
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidArgumentError(fmt::format("the list '{}', at byte {}: {}", excerpt(text_), at_, why));
  }

  bool at_end() const { return at_ == text_.size(); }
  char next() const { return at_end() ? '\0' : text_[at_]; }

  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) refuse(fmt::format("want '{}'", c));
  }

  template <typename Predicate>
  std::string_view take_while(const Predicate& predicate) {
    const size_t start = at_;
    while (!at_end() && predicate(static_cast<unsigned char>(text_[at_]))) ++at_;
    return text_.substr(start, at_ - start);
  }

  std::string_view digits() {
    const std::string_view found = take_while([](unsigned char c) { return std::isdigit(c) != 0; });
    if (found.empty()) refuse("want a number");
    if (found.size() > kMostDigits) refuse(fmt::format("a number has at most {} digits", kMostDigits));
    return found;
  }

  int number() { return value_of(digits()); }

  static int value_of(std::string_view digits) {
    int value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

 private:
  const std::string_view text_;
  size_t at_ = 0;
};

using Hosts = std::vector<std::string>;

void check_count(const ListReader& reader, size_t count) {
  if (count > kMostLaunchedTasks) reader.refuse(fmt::format("there are more than {}", kMostLaunchedTasks));
}

void add_range(ListReader& reader, Hosts* numbers) {
  const std::string_view first = reader.digits();
  const std::string_view last = reader.take('-') ? reader.digits() : first;
  const int from = ListReader::value_of(first), to = ListReader::value_of(last);
  if (to < from) reader.refuse(fmt::format("the range {}-{} is empty", first, last));
  check_count(reader, numbers->size() + static_cast<size_t>(to - from) + 1);
  for (int i = from; i <= to; ++i) numbers->push_back(fmt::format("{:0{}}", i, first.size()));
}

// What stands in the brackets, which are open.
Hosts numbers_in_brackets(ListReader& reader) {
  Hosts numbers;
  do {
    add_range(reader, &numbers);
  } while (reader.take(','));
  reader.need(']');
  return numbers;
}

// Each of the names followed by each of the ends.
Hosts combined(const ListReader& reader, const Hosts& names, const Hosts& ends) {
  check_count(reader, names.size() * ends.size());
  if (names[0].size() + ends[0].size() > kLongestHostName) {
    reader.refuse(fmt::format("a host has at most {} letters", kLongestHostName));
  }
  Hosts all;
  for (const std::string& name : names) {
    for (const std::string& end : ends) all.push_back(name + end);
  }
  return all;
}

bool is_name_letter(unsigned char c) {
  return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
}

Hosts next_hosts(ListReader& reader) {
  Hosts names{""};
  while (!reader.at_end() && reader.next() != ',') {
    if (reader.take('[')) {
      names = combined(reader, names, numbers_in_brackets(reader));
      continue;
    }
    const std::string_view part = reader.take_while(is_name_letter);
    if (part.empty()) reader.refuse("a host has letters, digits, '.', '-' and '_' only");
    names = combined(reader, names, {std::string(part)});
  }
  if (names[0].empty()) reader.refuse("want a host");
  return names;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view text) {
  ListReader reader(text);
  Hosts all;
  std::set<std::string> seen;
  do {
    for (std::string& host : next_hosts(reader)) {
      if (!seen.insert(host).second) reader.refuse(fmt::format("the host {} is there twice", host));
      all.push_back(std::move(host));
    }
    check_count(reader, all.size());
  } while (reader.take(','));
  return all;
}

std::vector<int> expand_task_counts(std::string_view text) {
  ListReader reader(text);
  std::vector<int> counts;
  size_t tasks = 0;
  do {
    const int count = reader.number();
    int times = 1;
    if (reader.take('(')) {
      reader.need('x');
      times = reader.number();
      reader.need(')');
    }
    check_count(reader, counts.size() + static_cast<size_t>(times));
    tasks += static_cast<size_t>(count) * static_cast<size_t>(times);
    check_count(reader, tasks);
    counts.insert(counts.end(), static_cast<size_t>(times), count);
  } while (reader.take(','));
  if (!reader.at_end()) reader.refuse("want ',' or the end");
  return counts;
}

}  // namespace longhaul
