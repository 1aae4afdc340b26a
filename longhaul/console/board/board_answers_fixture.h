#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "longhaul/console/board/board_answers.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::console {

// A directory of which cannot be read, or takes its time.
class LockedFiles : public testing::FaultyFileSystem {
 public:
  std::vector<std::string> list(const std::string& directory) override {
    if (directory == slow) while_listing();
    if (directory == locked) throw PermissionDeniedError("list " + directory + ": Permission denied");
    return FaultyFileSystem::list(directory);
  }
  std::string locked{}, slow{};
  std::function<void()> while_listing{};
};

class BoardAnswersTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }
  void look() {
    if (runs_ == nullptr) runs_ = std::make_shared<BoardRuns>(files_, directories(), kMostKeptBytes, clock_);
    for (int i = 0; i < 5; ++i) runs_->look([] { return true; });  // one of them looks for new runs, too
  }
  // A board that keeps so much at most.
  void bound(uint64_t bytes) { runs_ = std::make_shared<BoardRuns>(files_, directories(), bytes); }
  virtual std::vector<std::string> directories() const { return {directory_.path()}; }

  HttpReply reply(const std::string& path, const HttpQuery& query = {}) {
    for (const HttpRoute& route : board_routes(runs_)) {
      if (route.path == path) return route.answer({.method = "GET", .path = path, .query = query});
    }
    ADD_FAILURE() << "no route " << path;
    return {};
  }
  nlohmann::json get(const std::string& path, const HttpQuery& query = {}) {
    const HttpReply got = reply(path, query);
    EXPECT_EQ(got.status, 200) << path << ": " << *got.body;
    return got.status == 200 ? nlohmann::json::parse(*got.body) : nlohmann::json();
  }
  std::string tag(const std::string& name) {
    const nlohmann::json tags = get("/runs.json")["tags"];
    for (size_t i = 0; i < tags.size(); ++i) {
      if (tags[i] == name) return std::to_string(i);
    }
    ADD_FAILURE() << "no tag " << name << " in " << tags;
    return "";
  }
  nlohmann::json curve(const std::string& name, HttpQuery query = {}) {
    query.emplace("tag", tag(name));
    query.emplace("runs", "0");
    return get("/scalars.json", query)["curves"][0];
  }

  testing::TemporaryDirectory directory_;
  LockedFiles files_;
  testing::FakeClock clock_;
  std::shared_ptr<BoardRuns> runs_;
};

}  // namespace longhaul::console
