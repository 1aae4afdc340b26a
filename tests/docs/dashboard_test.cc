// The alert rules and the dashboard in examples/deployment ask for metrics that docs/guide/status_page.md lists, and
// docs/guide/operating.md has a row and a runbook for each alert.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "longhaul/io/files/file.h"

namespace longhaul {
namespace {

using ::testing::IsSupersetOf;
using ::testing::SizeIs;

std::string text_of(const std::string& path) {
  return read_file(FileSystem::real(), std::string(LONGHAUL_SOURCE) + "/" + path);
}

std::set<std::string> all(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

std::set<std::string> listed_metrics() {
  return all(text_of("docs/guide/status_page.md"), "\n- `(longhaul_[a-z_]+)`");
}

TEST(Dashboard, EachPanelAsksForAListedMetric) {
  const nlohmann::json dashboard = nlohmann::json::parse(text_of("examples/deployment/grafana.json"));
  std::set<std::string> used;
  for (const auto& panel : dashboard.at("panels")) {
    EXPECT_FALSE(panel.at("targets").empty()) << panel.at("title");
    for (const auto& target : panel.at("targets")) used.merge(all(target.at("expr"), "(longhaul_[a-z_]+)"));
  }
  for (const auto& variable : dashboard.at("templating").at("list"))
    used.merge(all(variable.at("query"), "(longhaul_[a-z_]+)"));
  EXPECT_GT(used.size(), 15u);
  EXPECT_THAT(listed_metrics(), IsSupersetOf(used));
}

TEST(Alerts, AskForListedMetricsAndHaveARunbook) {
  const std::string rules = text_of("examples/deployment/alerts.yaml");
  const std::string page = text_of("docs/guide/operating.md");
  EXPECT_THAT(listed_metrics(), IsSupersetOf(all(rules, "(longhaul_[a-z_]+)")));
  const std::set<std::string> alerts = all(rules, "- alert: ([A-Za-z]+)");
  EXPECT_EQ(alerts, all(page, "\n\\| ([A-Z][A-Za-z]+) \\|[^\n]*\\(#"));
  EXPECT_THAT(alerts, SizeIs(9));
}

}  // namespace
}  // namespace longhaul
