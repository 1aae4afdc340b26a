#include "longhaul/resume_check/likely_cause.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace longhaul {
namespace {

using ::testing::HasSubstr;

CheckpointComparison comparison_of(std::vector<std::string> names, const std::vector<std::string>& different,
                                   const std::string& how = "1 of 1 elements differ") {
  CheckpointComparison comparison{.names = std::move(names), .different = {}, .left_out = {}};
  for (const std::string& name : different) comparison.different.push_back({name, how});
  return comparison;
}

TEST(LikelyCauseTest, IsJudgedByWhatDiffersAndWhatIsThere) {
  EXPECT_THAT(likely_cause(comparison_of({"generators/cpu", "w"}, {"generators/cpu", "w"})).text,
              HasSubstr("draws numbers"));
  EXPECT_THAT(likely_cause(comparison_of({"w"}, {"w"})).text, HasSubstr("no state of a random number generator"));
  EXPECT_THAT(likely_cause(comparison_of({"generators/cpu", "w"}, {"w"})).text, HasSubstr("no state of an optimizer"));
  EXPECT_THAT(likely_cause(comparison_of({"Adam/w/exp_avg", "generators/cpu", "w"}, {"w"})).text,
              HasSubstr("the batches after a start are others"));
  EXPECT_THAT(likely_cause(comparison_of({"0.running_mean", "w"}, {"0.running_mean"})).text, HasSubstr("eval()"));
  EXPECT_THAT(likely_cause(comparison_of({"trainer/position", "w"}, {"trainer/position", "w"})).text,
              HasSubstr("position in the data"));
  EXPECT_THAT(likely_cause(comparison_of({"v", "w"}, {"v"}, "only in a")).text, HasSubstr("in one checkpoint alone"));
}

// The anchor of a heading, as pages link to it.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) anchor += static_cast<char>(std::tolower(c));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

TEST(LikelyCauseTest, NamesSectionsThatThePageHas) {
  std::ifstream page(LONGHAUL_RESTARTS_PAGE);
  std::ostringstream anchors;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) anchors << "docs/guide/restarts.md#" << anchor_of(line.substr(3)) << "\n";
  }
  for (const CheckpointComparison& comparison :
       {comparison_of({"w"}, {"w"}), comparison_of({"generators/cpu", "w"}, {"w"}),
        comparison_of({"Adam/w", "generators/cpu", "w"}, {"w"}), comparison_of({"running_var"}, {"running_var"})}) {
    EXPECT_THAT(anchors.str(), HasSubstr(likely_cause(comparison).section + "\n"));
  }
}

}  // namespace
}  // namespace longhaul
