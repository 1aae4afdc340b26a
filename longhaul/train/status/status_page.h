#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/status/listen_address.h"
#include "longhaul/status/status_server.h"
#include "longhaul/train/status/run_status.h"

namespace longhaul {

class PageAnswers;

// The page of a training run (docs/guide/status_page.md), from the beginning of a tenure to its end.
//
//   made --begin--> served --end--> made
//
// One thread at a time may call; status() may be told and asked from any thread.
class StatusPage {
 public:
  // InvalidArgumentError: the address is none, or beyond loopback without a token. Errors of TokenFile.
  StatusPage(RunStatusOptions options, const AccessNames& names);
  ~StatusPage();
  StatusPage(const StatusPage&) = delete;
  StatusPage& operator=(const StatusPage&) = delete;

  // Does nothing if it is served. A port that is taken is told in the log, and tried again meanwhile.
  void begin();
  void end();

  bool is_served() const { return server_ != nullptr; }
  const std::shared_ptr<RunStatus>& status() const { return status_; }
  int port() const { return server_ ? server_->port() : 0; }  // 0: it is not served

 private:
  const std::shared_ptr<RunStatus> status_;
  const ListenAddress address_;
  const StatusAccess access_;
  std::shared_ptr<PageAnswers> answers_;  // null, and so is the next one: not served
  std::unique_ptr<StatusServer> server_;
};

}  // namespace longhaul
