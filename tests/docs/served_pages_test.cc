// What the status page and the board serve, each metric and each option of the page stand in the guide, and the guide
// names no others. The lists are those of the running servers, of the sources and of the header.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <string>

#include "longhaul/console/board/board_server.h"
#include "longhaul/io/files/file.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/status/status_page.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Gt;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

using Names = std::set<std::string>;

constexpr char kStatusPage[] = "docs/guide/status_page.md", kBoardPage[] = "docs/guide/board.md";

std::string text_of(const std::string& path) {
  return read_file(FileSystem::real(), std::string(LONGHAUL_SOURCE) + "/" + path);
}

Names all(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  Names found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

// Of a page, from that heading to the next one.
std::string section(const std::string& page, const std::string& heading) {
  const std::string text = text_of(page);
  const size_t begin = text.find("\n## " + heading + "\n");
  EXPECT_NE(begin, text.npos) << page << " has no section " << heading;
  return begin == text.npos ? "" : text.substr(begin, text.find("\n## ", begin + 1) - begin);
}

// "GET /healthz", "POST /stop": of each item what stands in `...`, up to its colon; without parameters.
Names listed_endpoints(const std::string& page, const std::string& heading) {
  Names endpoints;
  for (const std::string& item : all(section(page, heading), "\n- ([^\n]*(?:\n  [^\n]*)*)")) {
    const size_t end = item.find("`: ");
    for (const std::string& each : all(item.substr(0, end == item.npos ? end : end + 1), "`((?:[A-Z]+ )?/[^`?]*)")) {
      endpoints.insert(each.starts_with('/') ? "GET " + each : each);
    }
  }
  return endpoints;
}

// A server says what it has to whoever asks for what it has not.
Names served_endpoints(int port) {
  const std::string reply = fetch(port, "GET", "/there-is-no-such-page");
  EXPECT_EQ(status_of(reply), 404);
  return all(body_of(reply), "\n  ([A-Z]+ /[^\n]*)");
}

class ServedPages : public ::testing::Test {
 protected:
  // Of a training that a coordinator could stop, but that asks for nothing to be done.
  int serve_status(const std::string& address = "127.0.0.1:0") {
    const std::string token = directory_.file("token");
    std::ofstream(token) << "0123456789abcdef0123\n";
    EXPECT_EQ(::chmod(token.c_str(), 0600), 0);
    page_ = std::make_unique<StatusPage>(RunStatusOptions{.page = {.address = address, .token_file = token}},
                                         AccessNames{});
    page_->begin();
    return page_->port();
  }

  const testing::TemporaryDirectory directory_;
  std::unique_ptr<StatusPage> page_;
};

TEST_F(ServedPages, EachEndpointOfTheStatusPageIsTold) {
  const Names served = served_endpoints(serve_status());
  EXPECT_THAT(served, AllOf(SizeIs(Gt(10u)), Contains("GET /healthz"), Contains("POST /stop")));
  EXPECT_EQ(listed_endpoints(kStatusPage, "What it serves"), served);
}

TEST_F(ServedPages, EachEndpointOfTheBoardIsTold) {
  console::BoardServer board(FileSystem::real(), {.directories = {directory_.path()}, .port = 0});
  board.start();
  const Names served = served_endpoints(board.port());
  EXPECT_THAT(served, AllOf(SizeIs(Gt(10u)), Contains("GET /scalars.json")));
  EXPECT_EQ(listed_endpoints(kBoardPage, "What it answers"), served);
}

// Beyond loopback; the first row of the table "Who may do what".
TEST_F(ServedPages, WhatEverybodyMayReadIsTold) {
  const int port = serve_status("0.0.0.0:0");
  Names open;
  for (const std::string& each : listed_endpoints(kStatusPage, "What it serves")) {
    const size_t space = each.find(' ');
    const std::string path = each.substr(space + 1);
    if (status_of(fetch(port, each.substr(0, space), path)) != 401) open.insert(path);
  }
  std::smatch row;
  const std::string table = section(kStatusPage, "Who may do what");
  ASSERT_TRUE(std::regex_search(table, row, std::regex("\n\\| ([^|]*) \\| [^|]* \\| everybody who reaches the port")));
  EXPECT_EQ(all(row[1], "`(/[^`]*)`"), open);
}

// Those that only some trainings have, too.
Names metrics_of_sources() {
  Names metrics;
  for (const auto& each : std::filesystem::recursive_directory_iterator(std::string(LONGHAUL_SOURCE) + "/longhaul")) {
    const std::string path = each.path();
    if (!path.ends_with(".cc") || path.ends_with("_test.cc")) continue;
    metrics.merge(all(read_file(FileSystem::real(), path), "family\\(\\s*\"([a-z_]+)\""));
  }
  return metrics;
}

TEST(ServedMetrics, EachIsToldAndTested) {
  const Names metrics = metrics_of_sources();
  EXPECT_THAT(metrics, SizeIs(Gt(20u)));
  EXPECT_EQ(all(section(kStatusPage, "Metrics"), "\n- `([a-z_]+)`"), metrics);
  const Names expected = all(text_of("longhaul/train/status/status_report_test.cc"), "\"(longhaul_[a-z_]+)\"");
  EXPECT_THAT(expected, IsSupersetOf(metrics)) << "StatusReport.EachMetricHasItsValue";
}

TEST(ServedMetrics, NoPageNamesOneThatThereIsNot) {
  const Names metrics = metrics_of_sources();
  for (const auto& each : std::filesystem::directory_iterator(std::string(LONGHAUL_SOURCE) + "/docs/guide")) {
    const std::string page = "docs/guide/" + each.path().filename().string();
    if (page.ends_with("/own_libtorch.md")) continue;  // it names targets of CMake
    for (const std::string& named : all(text_of(page), "`(longhaul_[a-z_]+)[`{]"))
      EXPECT_TRUE(metrics.contains(named)) << page << ": " << named;
  }
}

Names options_of_header() {
  const std::string header = text_of("longhaul/status/status_options.h");
  return all(header.substr(header.find("struct StatusOptions {")), "\n  [a-z][a-z0-9_:<>]* ([a-z_]+)(?:\\{\\}| = )");
}

TEST(ServedOptions, EachIsTold) {
  const Names options = options_of_header();
  EXPECT_THAT(options, AllOf(SizeIs(Gt(3u)), Contains("allowed_hosts"), Contains("last_step")));
  const Names named = all(text_of(kStatusPage) + text_of("docs/guide/operating.md"), "[`.]([a-z_]+)(?:`| = )");
  EXPECT_THAT(named, IsSupersetOf(options));
}

TEST(ServedOptions, NoExampleHasOneThatThereIsNot) {
  const Names options = options_of_header();
  Names used;
  for (const auto& each : std::filesystem::directory_iterator(std::string(LONGHAUL_SOURCE) + "/docs/guide")) {
    const std::string page = text_of("docs/guide/" + each.path().filename().string());
    for (const std::string& braces : all(page, "\\.status = \\{([^}]*)")) used.merge(all(braces, "\\.([a-z_]+) ="));
  }
  EXPECT_THAT(used, Contains("address"));
  EXPECT_THAT(options, IsSupersetOf(used));
}

}  // namespace
}  // namespace longhaul
