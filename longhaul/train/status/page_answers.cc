#include "longhaul/train/status/page_answers.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/stacks/thread_stacks.h"
#include "longhaul/status/metrics_text.h"
#include "longhaul/status/page_text.h"

namespace longhaul {
namespace {

constexpr Seconds kBetweenMeasures{10}, kWaitForDisk{0.2};
constexpr char kJson[] = "application/json";

HttpReply shared_reply(std::shared_ptr<const std::string> body, std::string content_type) {
  return {.content_type = std::move(content_type), .body = std::move(body)};
}

HttpReply asset(const char* text, std::string content_type) {
  return shared_reply(std::make_shared<const std::string>(text), std::move(content_type));
}

}  // namespace

std::shared_ptr<const std::string> SharedReply::get(const std::function<std::string()>& make) {
  MutexLock lock(mutex_);
  const Seconds now = Clock::real().now();
  if (!reply_ || now - made_ >= max_age_) {
    reply_ = std::make_shared<const std::string>(make());
    made_ = now;
  }
  return reply_;
}

DiskRoom::DiskRoom(FileSystem& files, std::string directory)
    : files_(files),
      directory_(std::move(directory)),
      threads_(Clock::real(), {.thread = "lh-disk", .owner = "the status page", .jobs = "looks at the disk"},
               {.most = 1, .most_idle = 1}) {}

std::optional<uint64_t> DiskRoom::free_bytes() {
  if (directory_.empty()) return std::nullopt;
  const Seconds now = Clock::real().now();
  MutexLock lock(measured_->mutex);
  const bool is_fresh = measured_->at && now - *measured_->at < kBetweenMeasures;
  if (measured_->is_under_way || is_fresh) return measured_->bytes;
  measured_->is_under_way = true;
  try {
    threads_.start([measured = measured_, files = &files_, directory = directory_] {
      std::optional<uint64_t> bytes;
      try {
        bytes = files->free_bytes(directory);
      } catch (const std::exception& error) {
        log_debug("the status page does not know how much room the disk has: {}", error.what());
      }
      MutexLock measured_lock(measured->mutex);
      measured->is_under_way = false;
      measured->at = Clock::real().now();
      measured->bytes = bytes;
    });
  } catch (const Error& error) {  // there is no thread for it, or the page ends
    measured_->is_under_way = false;
    log_debug("the status page does not look at the disk: {}", error.what());
  }
  return measured_->bytes;
}

void DiskRoom::stop() {
  threads_.request_stop("the page ends");
  threads_.stop(kWaitForDisk);
}

PageAnswers::PageAnswers(std::shared_ptr<RunStatus> status)
    : status_(std::move(status)), disk_(*status_->options().files, status_->options().directory) {
  disk_.free_bytes();  // so that the first reader finds it
}

StatusReport PageAnswers::report() {
  StatusReport report = status_->report();
  report.free_bytes = disk_.free_bytes();
  report.log.lines = log_.lines();
  report.log.warnings = log_.count(LogLevel::kWarning);
  report.log.errors = log_.count(LogLevel::kError);
  report.requests = requests_;
  return report;
}

// Whatever fails while training goes on is no reason to kill what has the only copy of its last steps.
HttpReply PageAnswers::healthz() const {
  if (const auto hung = status_->hung()) return text_reply(503, "hung: " + *hung + "\n");
  return text_reply(200, "ok\n");
}

HttpReply PageAnswers::readyz() const {
  const auto [phase, why] = status_->phase();
  if (phase == StatusReport::Phase::kTraining) return text_reply(200, "ok\n");
  return text_reply(503, why + "\n");
}

HttpReply PageAnswers::metrics() {
  return shared_reply(metrics_.get([&] { return report_as_metrics(report()); }), MetricsText::kContentType);
}

HttpReply PageAnswers::json() {
  return shared_reply(json_.get([&] { return report_as_json(report()); }), kJson);
}

HttpReply PageAnswers::curves() {
  return shared_reply(curves_.get([&] { return curves_as_json(status_->curves()); }), kJson);
}

// Each report interrupts all threads, so it is not made for everybody who asks.
HttpReply PageAnswers::stacks() {
  return shared_reply(stacks_.get([] { return describe(stacks_of_threads()); }), "text/plain; charset=utf-8");
}

HttpReply PageAnswers::checkpoint() const {
  if (status_->request_save() == RunStatus::Asked::kNobody) {
    return text_reply(409, "No checkpoint is saved on request: no session trains, or it saves none.\n");
  }
  log_info("status page: a checkpoint is requested");
  return text_reply(202, "A checkpoint is saved after the current step, and training continues.\n");
}

HttpReply PageAnswers::stop() const {
  if (status_->request_stop() == RunStatus::Asked::kNobody) {
    return text_reply(409, "There is no training that could be stopped.\n");
  }
  log_warning("status page: a stop is requested");
  return text_reply(202, "Training stops after the current step, as the program does then: with a last checkpoint.\n");
}

std::vector<HttpRoute> PageAnswers::routes(const std::shared_ptr<PageAnswers>& answers) {
  std::vector<HttpRoute> routes;
  const auto add = [&](const char* method, const char* path, HttpAccess access, auto answer) {
    routes.push_back(
        {.method = method, .path = path, .access = access, .answer = [answers, answer](const HttpRequest&) {
           ++answers->requests_;
           return answer(*answers);
         }});
  };
  using Self = PageAnswers;
  add("GET", "/", HttpAccess::kRead, [](Self&) { return asset(kPageHtml, "text/html; charset=utf-8"); });
  constexpr const char* kScript = "text/javascript; charset=utf-8";
  add("GET", "/page.js", HttpAccess::kRead, [](Self&) { return asset(kPageScript, kScript); });
  add("GET", "/shared.js", HttpAccess::kRead, [](Self&) { return asset(kSharedScript, kScript); });
  add("GET", "/page.css", HttpAccess::kRead, [](Self&) { return asset(kPageStyle, "text/css; charset=utf-8"); });
  add("GET", "/status.json", HttpAccess::kRead, [](Self& self) { return self.json(); });
  add("GET", "/curves.json", HttpAccess::kRead, [](Self& self) { return self.curves(); });
  add("GET", "/metrics", HttpAccess::kMetric, [](Self& self) { return self.metrics(); });
  add("GET", "/healthz", HttpAccess::kProbe, [](Self& self) { return self.healthz(); });
  add("GET", "/readyz", HttpAccess::kProbe, [](Self& self) { return self.readyz(); });
  add("POST", "/checkpoint", HttpAccess::kChange, [](Self& self) { return self.checkpoint(); });
  add("POST", "/stop", HttpAccess::kChange, [](Self& self) { return self.stop(); });
  add("GET", "/stacks", HttpAccess::kRead, [](Self& self) { return self.stacks(); });
  return routes;
}

}  // namespace longhaul
