#include "longhaul/train/status/status_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "longhaul/base/log.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/status/http_client_fixture.h"
#include "longhaul/status/page_text.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/status/metrics_parser_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPageToken[] = "0123456789abcdef0123";

class StatusPageTest : public ::testing::Test {
 protected:
  StatusPageTest() : sink_(set_log_sink([](LogLevel, const std::string&) {})) {}
  ~StatusPageTest() override {
    page.reset();
    set_log_sink(sink_);
  }

  std::string token_file() {
    const std::string path = directory.path() + "/token";
    std::ofstream(path) << kPageToken << "\n";
    ::chmod(path.c_str(), 0600);
    return path;
  }

  void make(StatusOptions options) {
    page = std::make_unique<StatusPage>(
        RunStatusOptions{.page = std::move(options), .directory = directory.path(), .saves = saves, .clock = &clock},
        AccessNames{"chief.status.address", "chief.status.token_file", "chief.status.allowed_hosts"});
  }

  void begin(HangTeller hangs = {}) {
    make({.address = "127.0.0.1:0", .token_file = token_file()});
    page->status()->watch_hangs(std::move(hangs));
    page->status()->begins(nullptr);
    page->begin();
    ASSERT_GT(page->port(), 0);
  }

  std::string get(const std::string& path) { return fetch(page->port(), "GET", path); }
  std::string post(const std::string& path) {
    return fetch(page->port(), "POST", path, fmt::format("Authorization: Bearer {}\r\n", kPageToken));
  }
  std::string refusal(const StatusOptions& options) {
    return refusal_of([&] { make(options); });
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  std::shared_ptr<SaveAttempts> saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.clock = &clock});
  const ThreadsEnd threads_end;
  Coordinator coord{{.clock = &clock}};
  std::unique_ptr<StatusPage> page;

 private:
  const LogSink sink_;
};

TEST_F(StatusPageTest, WrongOptionsAreRefusedWithTheRemedy) {
  EXPECT_THAT(refusal({.address = "8080"}), HasSubstr("chief.status.address is \"8080\", without a port"));
  EXPECT_THAT(refusal({.address = "0.0.0.0:0"}),
              AllOf(HasSubstr("others can reach"), HasSubstr("set chief.status.token_file")));
  EXPECT_THAT(refusal({.address = "127.0.0.1:0", .allowed_hosts = {"http://a"}}), HasSubstr("a name without scheme"));
  EXPECT_THAT(refusal({.address = "127.0.0.1:0", .last_step = -1}), HasSubstr("last_step is -1"));
  EXPECT_THAT(coded_error_of([&] { make({.address = "127.0.0.1:0", .token_file = directory.path() + "/none"}); }),
              HasSubstr("NOT_FOUND: "));
  const std::string open_file = token_file();
  ::chmod(open_file.c_str(), 0644);
  EXPECT_THAT(coded_error_of([&] { make({.address = "127.0.0.1:0", .token_file = open_file}); }),
              AllOf(HasSubstr("PERMISSION_DENIED: "), HasSubstr("chmod 600")));
  ::chmod(open_file.c_str(), 0600);
  make({.address = "0.0.0.0:0", .token_file = open_file});
}

TEST_F(StatusPageTest, HealthIsThatOfTheProcessUntilSomethingHangs) {
  std::atomic<bool> hangs{false};
  begin([&]() { return hangs ? std::optional<std::string>("no step for 600 s") : std::nullopt; });
  EXPECT_EQ(status_of(get("/healthz")), 200) << "while it prepares";
  saves->failed(std::make_exception_ptr(ResourceExhaustedError("full")));
  EXPECT_EQ(status_of(get("/healthz")), 200) << "while saves fail";
  page->status()->trains();
  hangs = true;
  EXPECT_EQ(status_of(get("/healthz")), 503);
  EXPECT_EQ(body_of(get("/healthz")), "hung: no step for 600 s\n");
  page->status()->ends();
  EXPECT_EQ(status_of(get("/healthz")), 200) << "while the last checkpoint is saved";
}

TEST_F(StatusPageTest, ReadyIsWhatTrains) {
  begin();
  EXPECT_EQ(status_of(get("/readyz")), 503);
  EXPECT_EQ(body_of(get("/readyz")), "the session is being prepared\n");
  page->status()->trains();
  EXPECT_EQ(status_of(get("/readyz")), 200);
  page->status()->prepares("the session was lost, and another one is made");
  EXPECT_EQ(body_of(get("/readyz")), "the session was lost, and another one is made\n");
  page->status()->ends();
  EXPECT_EQ(status_of(get("/readyz")), 503);
}

TEST_F(StatusPageTest, MetricsAreThoseOfTheRun) {
  begin();
  page->status()->trains();
  page->status()->look(5);
  log_warning("careful");
  const std::string reply = get("/metrics");
  EXPECT_THAT(reply, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  const auto metrics = parse_metrics(body_of(reply));
  EXPECT_EQ(metrics.at("longhaul_ready").value(), 1);
  EXPECT_EQ(metrics.at("longhaul_step").value(), 5);
  EXPECT_EQ(metrics.at("longhaul_log_messages_total").samples.at({{"level", "warning"}}), 1);
  EXPECT_GE(metrics.at("longhaul_status_requests_total").value(), 1);
}

TEST_F(StatusPageTest, TheDiskIsMeasuredBesideTheReplies) {
  begin();
  const auto is_known = [&] { return nlohmann::json::parse(body_of(get("/status.json")))["free_bytes"].is_number(); };
  const Seconds deadline = Clock::real().now() + Seconds{20};
  while (!is_known() && Clock::real().now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(is_known());
}

TEST_F(StatusPageTest, JsonAndCurvesAreWhatThePageShows) {
  begin();
  FileWriter writer(directory.path() + "/events");
  page->status()->follow_scalars(writer.logdir());
  writer.add_scalar("loss", 0.5f, 3);
  log_error("broken <b>");
  const std::string reply = get("/status.json");
  EXPECT_THAT(reply, HasSubstr("Content-Type: application/json"));
  const auto status = nlohmann::json::parse(body_of(reply));
  EXPECT_EQ(status["directory"], directory.path());
  EXPECT_EQ(status["log"].back()[2], "broken <b>");
  EXPECT_EQ(status["errors"], 1);
  EXPECT_EQ(nlohmann::json::parse(body_of(get("/curves.json")))["loss"], nlohmann::json({{3, 0.5}}));
}

TEST_F(StatusPageTest, ThePageNeedsNothingFromElsewhere) {
  begin();
  const std::string html = get("/"), script = get("/page.js"), style = get("/page.css"), shared = get("/shared.js");
  EXPECT_EQ(body_of(html), kPageHtml);
  EXPECT_EQ(body_of(shared), kSharedScript);
  EXPECT_EQ(body_of(script), kPageScript);
  EXPECT_EQ(body_of(style), kPageStyle);
  EXPECT_THAT(html, HasSubstr("Content-Type: text/html"));
  EXPECT_THAT(script, HasSubstr("Content-Type: text/javascript"));
  EXPECT_THAT(style, HasSubstr("Content-Type: text/css"));
  for (const std::string& text : {html, script, shared, style}) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr("https://")), Not(HasSubstr("src=\"http")), Not(HasSubstr("@import"))));
  }
  EXPECT_THAT(script, AllOf(Not(HasSubstr("innerHTML")), Not(HasSubstr("insertAdjacentHTML")), Not(HasSubstr("eval("))))
      << "text of programs could become HTML";
  EXPECT_THAT(html, AllOf(Not(HasSubstr("<script>")), Not(HasSubstr(" style=")), Not(HasSubstr("onclick"))))
      << "the Content-Security-Policy forbids it";
  EXPECT_THAT(style, AllOf(HasSubstr("prefers-color-scheme: dark"), HasSubstr("minmax(")));
}

TEST_F(StatusPageTest, ACheckpointIsRequestedByWhoHasTheToken) {
  begin();
  EXPECT_EQ(status_of(fetch(page->port(), "POST", "/checkpoint")), 401);
  EXPECT_EQ(status_of(post("/checkpoint")), 409) << "no session trains";
  page->status()->trains();
  const auto serves = page->status()->serve_saves(coord);
  EXPECT_EQ(status_of(get("/checkpoint")), 405);
  EXPECT_FALSE(page->status()->has_save_request());
  EXPECT_EQ(status_of(post("/checkpoint")), 202);
  EXPECT_TRUE(page->status()->take_save_request());
}

TEST_F(StatusPageTest, AStopIsRequestedByWhoHasTheToken) {
  begin();
  EXPECT_EQ(status_of(post("/stop")), 409) << "there is no training";
  page->status()->stopped_by(coord);
  EXPECT_EQ(status_of(fetch(page->port(), "POST", "/stop")), 401);
  EXPECT_EQ(status_of(get("/stop")), 405);
  EXPECT_FALSE(coord.should_stop());
  EXPECT_EQ(status_of(post("/stop")), 202);
  EXPECT_TRUE(coord.should_stop());
}

TEST_F(StatusPageTest, SaysWhereTheThreadsAre) {
  begin();
  const std::string stacks = fetch(page->port(), "GET", "/stacks");
  EXPECT_EQ(status_of(stacks), 200);
  EXPECT_THAT(body_of(stacks), AllOf(HasSubstr("lh-status"), HasSubstr("poll")));
}

TEST_F(StatusPageTest, BeyondLoopbackThePageNeedsTheToken) {
  make({.address = "0.0.0.0:0", .token_file = token_file()});
  page->begin();
  for (const char* path : {"/", "/shared.js", "/page.js", "/page.css", "/status.json", "/curves.json", "/stacks"}) {
    EXPECT_EQ(status_of(get(path)), 401) << path;
    const std::string header = fmt::format("Authorization: Bearer {}\r\n", kPageToken);
    EXPECT_EQ(status_of(fetch(page->port(), "GET", path, header)), 200) << path;
  }
  for (const char* path : {"/healthz", "/metrics"}) EXPECT_EQ(status_of(get(path)), 200) << path;
  EXPECT_EQ(status_of(get("/readyz")), 503) << "no session trains, but everybody may ask";
}

TEST_F(StatusPageTest, AnotherHostIsRefusedExceptForProbes) {
  make({.address = "127.0.0.1:0", .allowed_hosts = {"trainer.example.org"}});
  page->begin();
  const auto status = [&](const std::string& path, const std::string& host) {
    RawClient client(page->port());
    client.send(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", path, host));
    return status_of(client.receive_all());
  };
  for (const char* path : {"/", "/metrics", "/stacks"}) {
    EXPECT_EQ(status(path, "evil.example.org"), 421) << path;
    EXPECT_EQ(status(path, "trainer.example.org"), 200) << path;
  }
  EXPECT_EQ(status("/healthz", "evil.example.org"), 200);
}

TEST_F(StatusPageTest, BeginsAndEndsAgain) {
  begin();
  const int port = page->port();
  page->begin();
  EXPECT_EQ(page->port(), port) << "it was served already";
  page->end();
  EXPECT_EQ(page->port(), 0);
  page->end();
  page->begin();
  EXPECT_EQ(status_of(get("/healthz")), 200);
}

TEST_F(StatusPageTest, ManyReadersShareOneReply) {
  std::atomic<int> made{0};
  begin([&]() -> std::optional<std::string> {
    ++made;
    return std::nullopt;
  });
  page->status()->trains();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(status_of(get("/status.json")), 200);
  EXPECT_LT(made, 20);
}

}  // namespace
}  // namespace longhaul
