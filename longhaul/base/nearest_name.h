#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul {

// Finds the name that somebody may have meant who wrote one that is not there: with the fewest letters to insert,
// delete, replace or exchange with the next, and no more of them than a third of what was written; or one whose last
// parts are what was written ("hidden/weights" for "weights"). Of equals it is the first. It compares so many letters
// in all that it takes a fraction of a second, whatever it is given.
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
  size_t most_;          // changes that are still better than what was found
  size_t letters_left_;  // to be compared
  std::string found_;
  std::array<std::vector<size_t>, 3> rows_;
};

// The hint for one of several names.
std::string nearest_name_hint(std::string_view wanted, const std::vector<std::string>& candidates);

}  // namespace longhaul
