#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/job_threads.h"
#include "longhaul/console/board/board_runs.h"
#include "longhaul/io/files/file.h"
#include "longhaul/status/listen_address.h"
#include "longhaul/status/status_server.h"

namespace longhaul::console {

struct BoardOptions {
  std::vector<std::string> directories{};  // of trainings, or above them; one that is not there yet is waited for
  std::string address = "127.0.0.1";       // of digits, or "localhost"
  int port = 7007;                         // 0: any free one
  std::string token_file{};                // beyond loopback, what whoever reads the page must give
  std::vector<std::string> allowed_hosts{};
};

// A page about trainings, by their files (docs/guide/board.md). A thread ("lh-board-0") reads what is new once a
// second, and StatusServer's threads answer.
//
//   made --start--> served --stop--> over
//
// One thread at a time may call.
class BoardServer {
 public:
  // InvalidArgumentError: an option makes no sense, or a directory is something else; errors of TokenFile.
  BoardServer(FileSystem& files, const BoardOptions& options);
  ~BoardServer();  // stops
  BoardServer(const BoardServer&) = delete;
  BoardServer& operator=(const BoardServer&) = delete;

  // UnavailableError: the port is taken.
  void start();
  // Ends within seconds; a read that hangs is left behind.
  void stop();

  std::string url() const;  // once it is served
  int port() const { return server_.port(); }
  const BoardRuns& runs() const { return *runs_; }

 private:
  struct Follower;

  const std::shared_ptr<BoardRuns> runs_;
  const ListenAddress address_;
  StatusServer server_;
  const std::shared_ptr<Follower> follower_;  // a thread that is left behind shares it
  JobThreads threads_;
};

// longhaul board: serves the page until SIGINT, SIGTERM or SIGHUP comes; further ones are ignored from then on, so that
// the process ends with its own status. Call it while the process has one thread. `say`: what there is to say, a line
// each.
void serve_board(FileSystem& files, const BoardOptions& options, const std::function<void(const std::string&)>& say);

}  // namespace longhaul::console
