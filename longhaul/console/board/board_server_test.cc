#include "longhaul/console/board/board_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "longhaul/base/error.h"
#include "longhaul/console/board/board_fixture.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class BoardServerTest : public ::testing::Test {
 protected:
  BoardServerTest() { options.directories = {directory_.path()}; }

  std::unique_ptr<BoardServer> serve() {
    auto server = std::make_unique<BoardServer>(FileSystem::real(), options);
    server->start();
    while (!server->runs().has_looked()) std::this_thread::yield();
    return server;
  }
  std::string token_file(const std::string& token) {
    const std::string path = directory_.file("token");
    std::ofstream(path) << token;
    ::chmod(path.c_str(), 0600);
    return path;
  }

  testing::TemporaryDirectory directory_;
  BoardOptions options{.port = 0};
};

TEST_F(BoardServerTest, ServesThePageAndWhatItShows) {
  write_demo_runs(directory_.path());
  const auto server = serve();
  EXPECT_EQ(server->url(), fmt::format("http://127.0.0.1:{}/", server->port()));
  const std::string page = fetch(server->port(), "GET", "/");
  EXPECT_THAT(page, AllOf(HasSubstr("text/html"), HasSubstr("Content-Security-Policy: default-src 'none'"),
                          HasSubstr("img-src 'self'"), HasSubstr("board.js")));
  const auto runs = nlohmann::json::parse(body_of(fetch(server->port(), "GET", "/runs.json")));
  EXPECT_EQ(runs["runs"].size(), 2u);
  EXPECT_THAT(body_of(fetch(server->port(), "GET", "/scalars.json?tag=0&runs=0,1&points=50")), HasSubstr("\"run\":1"));
  EXPECT_THAT(fetch(server->port(), "GET", "/image?run=0&tag=3&step=0"), HasSubstr("image/png"));
}

TEST_F(BoardServerTest, IsReadOnlyAndKnowsOnlyItsPages) {
  write_demo_runs(directory_.path());
  const auto server = serve();
  const int port = server->port();
  const std::string refusal = fetch(port, "POST", "/runs.json");
  EXPECT_EQ(longhaul::status_of(refusal), 405);
  EXPECT_THAT(refusal, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_EQ(longhaul::status_of(fetch(port, "GET", "/../../etc/passwd")), 404);
  EXPECT_EQ(longhaul::status_of(fetch(port, "GET", "/baseline/run.journal")), 404);
  EXPECT_EQ(longhaul::status_of(fetch(port, "GET", "/scalars.json?tag=0&tag=1&runs=0")), 400);
  EXPECT_EQ(longhaul::status_of(fetch(port, "GET", "/scalars.json?" + std::string(3000, 'x'))), 400);
  EXPECT_EQ(longhaul::status_of(fetch(port, "GET", "/runs.json", "Host: evil.example\r\n")), 421);
}

TEST_F(BoardServerTest, SlowAndHostileClientsKeepNobodyFromThePage) {
  write_demo_runs(directory_.path());
  const auto server = serve();
  std::vector<RawClient> clients;
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back(server->port());
    clients.back().send(i % 2 == 0 ? "GET /runs.json HTTP/1.1\r\nHost: " : "\x16\x03\x01");
  }
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(server->port());  // it never reads what it has asked for
    clients.back().send("GET /dygraph.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }
  EXPECT_EQ(longhaul::status_of(fetch(server->port(), "GET", "/")), 200);
  EXPECT_EQ(longhaul::status_of(fetch(server->port(), "GET", "/scalars.json?tag=0&runs=0")), 200);
  for (const std::string query : {"?run=%00", "?run=0&tag=%ff%fe", "?run=0&tag=0&step=1e9", "?%zz=%", "?=&=&="}) {
    const int status = longhaul::status_of(fetch(server->port(), "GET", "/image" + query));
    EXPECT_TRUE(status == 400 || status == 404) << query << ": " << status;
  }
}

TEST_F(BoardServerTest, AStopEndsItThoughFilesAreBeingRead) {
  WrittenRun run(directory_.file("a"));
  run.start(0);
  for (int64_t step = 0; step < 200'000; ++step) run.scalar("loss", step, 1);
  run.flush();
  BoardServer server(FileSystem::real(), options);
  server.start();
  const int port = server.port();
  server.stop();
  EXPECT_EQ(server.port(), port);
  BoardOptions again = options;
  again.port = port;
  BoardServer next(FileSystem::real(), again);
  next.start();  // the port is free
}

using BoardServerDeathTest = BoardServerTest;

TEST_F(BoardServerDeathTest, ItEndsWithItsOwnStatusHoweverManySignalsCome) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        serve_board(FileSystem::real(), options, [](const std::string& line) {
          if (line.find("http://") == line.npos) return;
          for (const int each : {SIGINT, SIGTERM, SIGHUP}) raise(each);
        });
        raise(SIGTERM);
        _exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(BoardServerTest, APortThatIsTakenIsAnError) {
  const auto server = serve();
  options.port = server->port();
  BoardServer second(FileSystem::real(), options);
  EXPECT_THAT([&] { second.start(); }, ThrowsMessage<UnavailableError>(HasSubstr("is taken by another process")));
}

TEST_F(BoardServerTest, BeyondLoopbackItNeedsAToken) {
  options.address = "0.0.0.0";
  EXPECT_THAT([&] { BoardServer(FileSystem::real(), options); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("--address is \"0.0.0.0:0\""), HasSubstr("set --token-file"))));
  options.token_file = token_file("0123456789abcdef0123");
  const auto server = serve();
  EXPECT_THAT(fetch(server->port(), "GET", "/"), HasSubstr("This needs the token of --token-file"));
  EXPECT_EQ(
      longhaul::status_of(fetch(server->port(), "GET", "/runs.json", "Authorization: Bearer 0123456789abcdef0123\r\n")),
      200);
}

TEST_F(BoardServerTest, OptionsThatMakeNoSenseAreNamed) {
  const auto refusal = [&](BoardOptions wrong) {
    try {
      BoardServer server(FileSystem::real(), wrong);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::ofstream(directory_.file("file")) << "x";
  EXPECT_THAT(refusal({.directories = {directory_.file("file")}}), HasSubstr("file is no directory"));
  EXPECT_THAT(refusal({}), HasSubstr("needs a directory"));
  EXPECT_THAT(refusal({.directories = {"."}, .address = "train-3"}), HasSubstr("--address"));
  EXPECT_THAT(refusal({.directories = {"."}, .port = 0, .allowed_hosts = {"http://a"}}), HasSubstr("--allow-host"));
  EXPECT_EQ(refusal({.directories = {"."}, .address = "::1", .port = 0}), "");
}

}  // namespace
}  // namespace longhaul::console
