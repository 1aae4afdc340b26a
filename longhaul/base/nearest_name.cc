#include "longhaul/base/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace longhaul {
namespace {

constexpr size_t kMostLetters = 50'000'000;  // compared with each other: about a tenth of a second

// Letters inserted, deleted, replaced, or exchanged with the one after; some number above `most` where it is more than
// that. In `rows` are those of the table for the last three letters of `a`.
size_t edit_distance(std::string_view a, std::string_view b, size_t most, std::array<std::vector<size_t>, 3>& rows) {
  for (auto& row : rows) row.resize(b.size() + 1);
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t>& row = rows[i % 3];
    const std::vector<size_t>&above = rows[(i - 1) % 3], &two_above = rows[(i + 1) % 3];
    size_t smallest = row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) row[j] = std::min(row[j], two_above[j - 2] + 1);
      smallest = std::min(smallest, row[j]);
    }
    if (smallest > most + 1) return smallest;  // one more, since an exchange looks at two rows
  }
  return rows[a.size() % 3][b.size()];
}

bool ends_with_part(std::string_view name, std::string_view part) {
  return name.size() > part.size() && name.ends_with(part) && name[name.size() - part.size() - 1] == '/';
}

}  // namespace

NearestName::NearestName(std::string_view wanted)
    : wanted_(wanted),
      most_(wanted.size() < 2 ? 0 : std::max<size_t>(1, wanted.size() / 3)),
      letters_left_(kMostLetters) {}

void NearestName::offer(std::string_view candidate) {
  if (most_ == 0) return;
  const size_t longer = std::max(candidate.size(), wanted_.size()),
               shorter = std::min(candidate.size(), wanted_.size());
  if (found_.empty() && ends_with_part(candidate, wanted_)) found_ = candidate;
  const size_t letters = candidate.size() * wanted_.size();
  if (longer - shorter > most_ || letters > letters_left_) return;
  letters_left_ -= letters;
  const size_t distance = edit_distance(wanted_, candidate, most_, rows_);
  if (distance > most_) return;
  found_ = candidate;
  most_ = distance == 0 ? 0 : distance - 1;
}

std::string NearestName::hint() const {
  return found_.empty() ? "" : fmt::format("; did you mean '{}'?", found_);
}

std::string nearest_name_hint(std::string_view wanted, const std::vector<std::string>& candidates) {
  NearestName nearest(wanted);
  for (const std::string& candidate : candidates) nearest.offer(candidate);
  return nearest.hint();
}

}  // namespace longhaul
