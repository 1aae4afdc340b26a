#include "longhaul/status/status_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <list>
#include <optional>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/job_threads.h"
#include "longhaul/base/log.h"
#include "longhaul/status/door.h"
#include "longhaul/status/http_protocol.h"
#include "longhaul/status/reply_box.h"

namespace longhaul {
namespace {

constexpr Seconds kPause{1};
constexpr Seconds kLastReplies{0.5};
constexpr Seconds kForever{3600};

// "/healthz" of "GET /healthz?verbose HTTP/1.1"
std::string_view path_of(std::string_view request) {
  const size_t begin = request.find(' ');
  if (begin == request.npos) return "";
  request.remove_prefix(begin + 1);
  return request.substr(0, request.find_first_of(" ?\r\n"));
}

// Clients take an eighth of the descriptors that the process may have at most: the rest is for training.
HttpLimits within_descriptors(HttpLimits limits) {
  rlimit open{};
  if (::getrlimit(RLIMIT_NOFILE, &open) != 0) return limits;
  limits.most_connections = std::min<size_t>(limits.most_connections, std::max<rlim_t>(open.rlim_cur / 8, 2));
  return limits;
}

int poll_timeout(Seconds time) {
  return static_cast<int>(std::ceil(std::clamp(time, Seconds{0}, kForever).count() * 1000));
}

}  // namespace

// What the thread does. Other threads call request_stop() and port(), and put replies into the box.
class StatusServer::Loop : public std::enable_shared_from_this<StatusServer::Loop> {
 public:
  Loop(ListenAddress address, StatusAccess access, std::vector<HttpRoute> routes, std::string what,
       const HttpLimits& limits)
      : access_(std::move(access)),
        routes_(std::move(routes)),
        what_(std::move(what)),
        limits_(within_descriptors(limits)),
        protocol_([this](const HttpRequest& request) { return answer(request); }),
        door_(std::move(address), what_),
        jobs_(Clock::real(), {.thread = "lh-answer", .owner = what_, .jobs = "replies"},
              {.most = 2, .most_queued = 64, .most_idle = 2}) {}

  void open() { door_.open(); }
  void listen() { door_.open_if_due(now()); }
  void run();
  void request_stop();
  bool stop_jobs() { return jobs_.stop(kLastReplies); }

  int port() const { return door_.port(); }

 private:
  HttpReply answer(const HttpRequest& request) const;
  bool is_probe(std::string_view request) const;
  void serve();
  void accept_all(Seconds now);
  using Connections = std::list<HttpConnection>;
  Connections::iterator oldest_that_may_go();
  void work_on(HttpConnection& connection, Seconds now);
  void begin_answer(HttpConnection& connection, std::string request, Seconds now);
  void send_replies(Seconds now);
  void wait(Seconds until);
  void leave_waiting_clients();
  static Seconds now() { return Clock::real().now(); }

  const StatusAccess access_;
  const std::vector<HttpRoute> routes_;
  const std::string what_;
  const HttpLimits limits_;
  const HttpProtocol protocol_;
  Door door_;
  ReplyBox box_;
  Connections connections_;  // oldest first
  int64_t last_id_ = 0;
  std::atomic<bool> is_stopping_{false};
  JobThreads jobs_;  // the last member: its jobs use the others
};

void StatusServer::Loop::run() {
  while (true) {
    try {
      return serve();
    } catch (const std::exception& error) {  // above all, no memory
      log_error("{}: all its connections are closed: {}", what_, error.what());
      connections_.clear();
      door_.pause_until(now() + kPause);
    }
  }
}

void StatusServer::Loop::serve() {
  std::optional<Seconds> end;
  while (true) {
    const Seconds time = now();
    if (is_stopping_ && !end) {
      end = time + kLastReplies;
      leave_waiting_clients();
    }
    if (end && (connections_.empty() || time >= *end)) break;
    if (!end) door_.open_if_due(time);
    wait(end ? std::min(*end, time + kLastReplies) : time + kForever);
  }
  connections_.clear();
  door_.close();
}

// Those that have asked for nothing yet.
void StatusServer::Loop::leave_waiting_clients() {
  door_.close();
  connections_.remove_if([](const HttpConnection& each) { return each.state() == HttpConnection::State::kReading; });
}

// One round: waits for a socket, a reply, a deadline or a stop, and does what is to be done.
void StatusServer::Loop::wait(Seconds until) {
  std::vector<pollfd> polled{{box_.fd(), POLLIN, 0}};
  const bool accepts = door_.is_accepting(now());
  if (accepts) polled.push_back({door_.listener().fd(), POLLIN, 0});
  if (!accepts && !is_stopping_) until = std::min(until, door_.next());
  const size_t first = polled.size();
  for (const HttpConnection& each : connections_) {
    // A client that goes while its reply is made is noticed when that is written.
    const bool is_answering = each.state() == HttpConnection::State::kAnswering;
    polled.push_back({is_answering ? -1 : each.fd(), each.events(), 0});
    until = std::min(until, each.deadline());
  }
  // wait: until the next deadline of a client; sockets, replies and a stop end it
  if (::poll(polled.data(), polled.size(), poll_timeout(until - now())) < 0) return;  // EINTR
  const Seconds time = now();
  send_replies(time);
  size_t index = first;
  for (HttpConnection& each : connections_) {
    if (polled[index++].revents != 0) work_on(each, time);
    each.expire(time);
  }
  connections_.remove_if([](const HttpConnection& each) { return each.state() == HttpConnection::State::kOver; });
  if (accepts && polled[1].revents != 0) accept_all(time);
}

void StatusServer::Loop::accept_all(Seconds now) {
  constexpr int kMostAtOnce = 16;
  try {
    for (int i = 0; i < kMostAtOnce; ++i) {
      const bool is_full = connections_.size() >= limits_.most_connections;
      const auto oldest = is_full ? oldest_that_may_go() : connections_.end();
      if (is_full && oldest == connections_.end()) {
        door_.pause_until(now + kPause);
        return;
      }
      OwnedSocket socket = door_.listener().next_client();
      if (!socket.is_open()) return;
      if (is_full) connections_.erase(oldest);
      connections_.emplace_back(std::move(socket), ++last_id_, limits_, now);
      work_on(connections_.back(), now);
    }
  } catch (const std::exception& error) {
    log_debug("{}: {}", what_, error.what());
    door_.pause_until(now + kPause);
  }
}

// The oldest that the training does not work for; the end: it works for all.
StatusServer::Loop::Connections::iterator StatusServer::Loop::oldest_that_may_go() {
  return std::find_if(connections_.begin(), connections_.end(),
                      [](const HttpConnection& each) { return each.state() != HttpConnection::State::kAnswering; });
}

void StatusServer::Loop::work_on(HttpConnection& connection, Seconds now) {
  connection.work(now);
  if (auto request = connection.take_request()) begin_answer(connection, std::move(*request), now);
}

bool StatusServer::Loop::is_probe(std::string_view request) const {
  if (!request.starts_with("GET ") && !request.starts_with("HEAD ")) return false;
  const std::string_view path = path_of(request);
  return std::any_of(routes_.begin(), routes_.end(),
                     [&](const HttpRoute& route) { return route.access == HttpAccess::kProbe && route.path == path; });
}

void StatusServer::Loop::begin_answer(HttpConnection& connection, std::string request, Seconds now) {
  if (is_probe(request)) return connection.send(protocol_.reply_to(request), now);
  try {
    jobs_.start([self = shared_from_this(), id = connection.id(), request = std::move(request)] {
      self->box_.put({id, self->protocol_.reply_to(request)});
    });
  } catch (const Error&) {
    connection.send(bare_reply(503, "Service Unavailable", "Too many ask at once.\n"), now);
  }
}

void StatusServer::Loop::send_replies(Seconds now) {
  for (ReplyBox::Reply& each : box_.take()) {
    const auto connection = std::find_if(connections_.begin(), connections_.end(), [&](const HttpConnection& other) {
      return other.id() == each.connection && other.state() == HttpConnection::State::kAnswering;
    });
    if (connection != connections_.end()) connection->send(std::move(each.text), now);
  }
}

HttpReply StatusServer::Loop::answer(const HttpRequest& request) const {
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  std::vector<std::string> methods;  // that the path has
  for (const HttpRoute& route : routes_) {
    if (route.path != request.path) continue;
    methods.push_back(route.method == "GET" ? "GET, HEAD" : route.method);
    if (route.method != method) continue;
    if (auto refusal = access_.refusal(request, route.access)) return *refusal;
    if (request.has_body) return text_reply(413, "No request to this page has a body.\n");
    return route.answer(request);
  }
  if (auto refusal = access_.refusal(request, HttpAccess::kRead)) return *refusal;
  if (!methods.empty()) {
    HttpReply reply = text_reply(405, fmt::format("{} is called by another method.\n", request.path));
    reply.allow = fmt::format("{}", fmt::join(methods, ", "));
    return reply;
  }
  std::string known;
  for (const HttpRoute& route : routes_) known += fmt::format("  {} {}\n", route.method, route.path);
  return text_reply(404, "There is no such page. There are:\n" + known);
}

void StatusServer::Loop::request_stop() {
  is_stopping_ = true;
  box_.wake();
  jobs_.request_stop("the training is over");
}

StatusServer::StatusServer(ListenAddress address, StatusAccess access, std::vector<HttpRoute> routes, std::string what,
                           const HttpLimits& limits)
    : loop_(std::make_shared<Loop>(std::move(address), std::move(access), std::move(routes), std::move(what), limits)) {
}

StatusServer::~StatusServer() {
  stop();
}

void StatusServer::open() {
  loop_->open();
}

void StatusServer::start() {
  loop_->listen();
  thread_ = NamedThread("lh-status", [loop = loop_] { loop->run(); });
}

void StatusServer::stop() {
  if (!thread_.joinable()) return;
  loop_->request_stop();
  thread_.join();
  loop_->stop_jobs();
}

int StatusServer::port() const {
  return loop_->port();
}

}  // namespace longhaul
