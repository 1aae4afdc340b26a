#include "longhaul/train/status/status_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/train/status/page_answers.h"

namespace longhaul {
namespace {

StatusAccess make_access(const StatusOptions& options, const ListenAddress& address, const AccessNames& names) {
  if (options.last_step < 0) {
    throw InvalidArgumentError(
        fmt::format("StatusOptions::last_step is {}: it must be 0, if it is not known, or more", options.last_step));
  }
  return access_by_options(address, options.allowed_hosts, options.token_file, names, {});
}

std::string page_name(const std::string& directory) {
  return directory.empty() ? "status page" : "status page of " + directory;
}

}  // namespace

StatusPage::StatusPage(RunStatusOptions options, const AccessNames& names)
    : status_(std::make_shared<RunStatus>(std::move(options))),
      address_(parse_listen_address(status_->options().page.address, names.address)),
      access_(make_access(status_->options().page, address_, names)) {}

StatusPage::~StatusPage() {
  end();
}

// A process that has no thread for it trains all the same.
void StatusPage::begin() {
  if (server_) return;
  answers_ = std::make_shared<PageAnswers>(status_);
  const std::string name = page_name(status_->options().directory);
  try {
    server_ = std::make_unique<StatusServer>(address_, access_, PageAnswers::routes(answers_), name);
    server_->start();
  } catch (const std::exception& error) {
    log_warning("{}: there is none, and training continues without it: {}", name, error.what());
    server_.reset();
  }
}

void StatusPage::end() {
  server_.reset();
  if (answers_) answers_->end();
  answers_.reset();
}

}  // namespace longhaul
