#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul {

// Suggests the name that was probably meant in place of one that does not exist: the one with the fewest letters to
// insert, delete, replace or swap with the next, at most a third of the wanted name's; or one whose last parts are the
// wanted name ("hidden/weights" for "weights"). Ties go to the first. The number of comparisons is bounded, so that it
// takes a fraction of a second on any input.
//
//   NearestName nearest("hiden/weights");
//   for (const std::string& name : names) nearest.offer(name);
//   throw NotFoundError("no operation hiden/weights" + nearest.hint());     // "; did you mean 'hidden/weights'?"
class NearestName {
 public:
  explicit NearestName(std::string_view wanted);
  void offer(std::string_view candidate);

  const std::string& found() const { return found_; }  // empty: none is near
  std::string hint() const;                            // empty: none is near

 private:
  const std::string wanted_;
  size_t most_;          // the most changes with which a name would still beat found_
  size_t letters_left_;  // to be compared
  std::string found_;
  std::array<std::vector<size_t>, 3> rows_;
};

// The hint for one of several names.
std::string nearest_name_hint(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace longhaul
