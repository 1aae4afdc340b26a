#include "longhaul/console/board/board_server.h"

#include <fmt/format.h>
#include <signal.h>

#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/base/mutex.h"
#include "longhaul/console/board/board_answers.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/io/process/child_signals.h"

namespace longhaul::console {
namespace {

constexpr Seconds kBetweenLooks{1};
constexpr Seconds kLastLook{2};

std::vector<std::string> checked(FileSystem& files, std::vector<std::string> directories) {
  if (directories.empty()) throw InvalidArgumentError("a board needs a directory");
  for (const std::string& each : directories) {
    if (files.exists(each) && !files.is_directory(each)) {
      throw InvalidArgumentError(
          fmt::format("{} is no directory: a board shows directories of trainings, and those "
                      "above them",
                      each));
    }
  }
  return directories;
}

ListenAddress address_of(const BoardOptions& options) {
  const bool lacks_brackets = options.address.find(':') != std::string::npos && !options.address.starts_with('[');
  const std::string host = lacks_brackets ? "[" + options.address + "]" : options.address;
  return parse_listen_address(fmt::format("{}:{}", host, options.port), "--address with --port");
}

StatusServer make_server(const std::shared_ptr<const BoardRuns>& runs, const ListenAddress& address,
                         const BoardOptions& options) {
  const AccessNames names{"--address", "--token-file", "--allow-host"};
  return StatusServer(address, access_by_options(address, options.allowed_hosts, options.token_file, names, names),
                      board_routes(runs), "board");
}

}  // namespace

// Reads what is new, again and again.
struct BoardServer::Follower {
  explicit Follower(std::shared_ptr<BoardRuns> followed) : runs(std::move(followed)) {}

  void run() EXCLUDES(mutex) {
    while (go_on()) {
      runs->look([this] { return go_on(); });
      const Seconds end = Clock::real().now() + kBetweenLooks;
      MutexLock lock(mutex);
      // wait: polls: files of other machines tell nobody that they have grown; a stop ends it
      while (!is_stopping && Clock::real().now() < end) Clock::real().wait_until(stopped, mutex, end);
    }
  }
  bool go_on() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    return !is_stopping;
  }
  void stop() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    is_stopping = true;
    stopped.notify_all();
  }

  const std::shared_ptr<BoardRuns> runs;
  Mutex mutex;
  CondVar stopped;
  bool is_stopping GUARDED_BY(mutex) = false;
};

BoardServer::BoardServer(FileSystem& files, const BoardOptions& options)
    : runs_(std::make_shared<BoardRuns>(files, checked(files, options.directories))),
      address_(address_of(options)),
      server_(make_server(runs_, address_, options)),
      follower_(std::make_shared<Follower>(runs_)),
      threads_(Clock::real(), {.thread = "lh-board", .owner = "the board", .jobs = "looks"}, {.most = 1}) {}

BoardServer::~BoardServer() {
  stop();
}

void BoardServer::start() {
  server_.open();
  server_.start();
  threads_.start([follower = follower_] { follower->run(); });
}

void BoardServer::stop() {
  follower_->stop();
  threads_.request_stop("the board ends");
  server_.stop();
  threads_.stop(kLastLook);
}

std::string BoardServer::url() const {
  return page_url(address_, server_.port());
}

void serve_board(FileSystem& files, const BoardOptions& options, const std::function<void(const std::string&)>& say) {
  const ChildSignals signals{SIGINT, SIGTERM, SIGHUP};  // before there are threads, which must not get them
  BoardServer server(files, options);
  server.start();
  for (const std::string& directory : options.directories) {
    if (!files.exists(directory)) say(fmt::format("{} is not there yet: it is waited for", shown(directory, 1000)));
  }
  say(server.url() + "  (Ctrl-C ends it)");
  while (!signals.wait(std::nullopt)) continue;  // a signal ends it
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) ::signal(each, SIG_IGN);
}

}  // namespace longhaul::console
