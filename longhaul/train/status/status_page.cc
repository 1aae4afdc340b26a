#include "longhaul/train/status/status_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/credentials/token_file.h"
#include "longhaul/train/status/page_answers.h"

namespace longhaul {
namespace {

std::function<bool(std::string_view)> token_check(const std::string& path) {
  if (path.empty()) return nullptr;
  const auto file = std::make_shared<TokenFile>(path, Clock::real());
  return [file](std::string_view token) { return file->accepts(token); };
}

StatusAccess make_access(const StatusOptions& options, const ListenAddress& address, const std::string& option) {
  if (!address.is_loopback && options.token_file.empty()) {
    throw InvalidArgumentError(fmt::format(
        "{}.address is \"{}\", which others can reach, but there is no token for who may read the page: set "
        "{}.token_file (`openssl rand -hex 32 > token && chmod 600 token`), or listen on 127.0.0.1",
        option, options.address, option));
  }
  for (const std::string& host : options.allowed_hosts) {
    if (!host.empty() && host.find_first_of("/: \t") == host.npos) continue;
    throw InvalidArgumentError(
        fmt::format("{}.allowed_hosts has \"{}\": it must be a name without scheme and port, "
                    "such as \"trainer-0.example.org\"",
                    option, host));
  }
  if (options.last_step < 0) {
    throw InvalidArgumentError(
        fmt::format("{}.last_step is {}: it must be 0, if it is not known, or more", option, options.last_step));
  }
  return StatusAccess(address.is_loopback, options.allowed_hosts, token_check(options.token_file));
}

std::string page_name(const std::string& directory) {
  return directory.empty() ? "status page" : "status page of " + directory;
}

}  // namespace

StatusPage::StatusPage(RunStatusOptions options, const std::string& option)
    : status_(std::make_shared<RunStatus>(std::move(options))),
      address_(parse_listen_address(status_->options().page.address, option + ".address")),
      access_(make_access(status_->options().page, address_, option)) {}

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
