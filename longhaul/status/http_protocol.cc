#include "longhaul/status/http_protocol.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

constexpr uint64_t kMostBodyBytes = 1024;
constexpr size_t kMostParameters = 16, kMostNameBytes = 64, kMostValueBytes = 1024;

// No page of another site may show this one, and nothing in it may load anything from elsewhere.
const httplib::Headers& safe_headers() {
  static const auto& headers = *new httplib::Headers{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cache-Control", "no-store"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  return headers;
}

bool is_wish(std::string_view line) {
  constexpr std::string_view kWishes[] = {"range:", "if-range:", "accept-encoding:", "expect:"};
  const auto is_same = [](char wish, char c) { return wish == (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); };
  return std::any_of(std::begin(kWishes), std::end(kWishes), [&](std::string_view wish) {
    return line.size() >= wish.size() && std::equal(wish.begin(), wish.end(), line.begin(), is_same);
  });
}

// Without the lines that ask the library for what it does at a price: parts of a reply, whose list it reads by a
// recursive regular expression, and compression, which takes time.
// The first line is the request itself, whatever it looks like.
std::string without_wishes(std::string_view request) {
  const size_t first = std::min(request.find('\n'), request.size() - 1) + 1;
  std::string rest(request.substr(0, first));
  request.remove_prefix(first);
  while (!request.empty()) {
    const size_t end = std::min(request.find('\n'), request.size() - 1) + 1;
    if (!is_wish(request.substr(0, end))) rest += request.substr(0, end);
    request.remove_prefix(end);
  }
  return rest;
}

bool has_body(const httplib::Request& request) {
  if (request.has_header("Transfer-Encoding")) return true;
  if (!request.has_header("Content-Length")) return false;
  const std::string length = request.get_header_value("Content-Length");
  const bool is_number =
      !length.empty() && std::all_of(length.begin(), length.end(), [](char c) { return c >= '0' && c <= '9'; });
  return !is_number || length.size() > 4 || std::stoul(length) > kMostBodyBytes;
}

// More than one Host may mean another to whoever stands before us.
std::string host_of(const httplib::Request& request) {
  return request.get_header_value_count("Host") == 1 ? request.get_header_value("Host") : "";
}

// nullopt: there are too many parameters, one is too long, or one is there twice and may mean either.
std::optional<HttpQuery> query_of(const httplib::Request& request) {
  if (request.params.size() > kMostParameters) return std::nullopt;
  HttpQuery query;
  for (const auto& [name, value] : request.params) {
    if (name.size() > kMostNameBytes || value.size() > kMostValueBytes) return std::nullopt;
    if (!query.emplace(name, value).second) return std::nullopt;
  }
  return query;
}

}  // namespace

// Derived, for a request that comes from no socket.
class HttpProtocol::Server : public httplib::Server {
 public:
  explicit Server(Answer answer) : answer_(std::move(answer)) {
    set_default_headers(safe_headers());
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      const bool is_read = request.method == "GET" || request.method == "HEAD";
      write(answer_or_error(request), is_read, response);
      return HandlerResponse::Handled;
    });
  }

  std::string reply_to(std::string_view request) {
    const std::string simple = without_wishes(request);
    httplib::detail::BufferStream both;  // what is written comes after what is read
    both.write(simple.data(), simple.size());
    call_library(*this, both);
    return both.get_buffer().substr(simple.size());
  }

 private:
  // Its parameters have changed between 0.11 (Debian 12) and 0.18 (Debian 13).
  template <typename Self>
  static void call_library(Self& self, httplib::Stream& stream) {
    bool is_closed = true;
    if constexpr (requires { self.process_request(stream, true, is_closed, nullptr); }) {
      self.process_request(stream, true, is_closed, nullptr);
    } else {
      self.process_request(stream, std::string(), 0, std::string(), 0, true, is_closed, nullptr);
    }
  }

  HttpReply answer_or_error(const httplib::Request& request) const {
    auto query = query_of(request);
    if (!query) {
      return text_reply(400,
                        fmt::format("What follows the \"?\" must be {} parameters at most, each once, with {} bytes "
                                    "at most.\n",
                                    kMostParameters, kMostValueBytes));
    }
    try {
      return answer_({.method = request.method,
                      .path = request.path,
                      .query = std::move(*query),
                      .host = host_of(request),
                      .origin = request.get_header_value("Origin"),
                      .fetch_site = request.get_header_value("Sec-Fetch-Site"),
                      .authorization = request.get_header_value("Authorization"),
                      .has_body = has_body(request)});
    } catch (...) {
      log_error("status page: {}: {}", request.path.substr(0, 100), message_of(std::current_exception()));
      return text_reply(500, "The log of the program says why.\n");
    }
  }

  // A browser asks its reader for a password where a page is opened ("Basic"), and not where a script of a page asks
  // for something ("Bearer"), which says itself what is lacking.
  static void write(const HttpReply& reply, bool is_read, httplib::Response& response) {
    response.status = reply.status;
    response.set_content(*reply.body, reply.content_type.c_str());
    if (reply.status == 401)
      response.set_header("WWW-Authenticate",
                          fmt::format("{} realm=\"Longhaul, the token\"", is_read ? "Basic" : "Bearer"));
    if (reply.status == 405) response.set_header("Allow", reply.allow);
    if (reply.status == 503) response.set_header("Retry-After", "1");
  }

  const Answer answer_;
};

HttpProtocol::HttpProtocol(Answer answer) : server_(std::make_unique<Server>(std::move(answer))) {}
HttpProtocol::~HttpProtocol() = default;

std::string HttpProtocol::reply_to(std::string_view request) const {
  std::string reply = server_->reply_to(request);
  return reply.empty() ? bare_reply(400, "Bad Request", "This is no request of HTTP.\n") : reply;
}

std::string bare_reply(int status, std::string_view reason, std::string_view text) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n"
      "X-Content-Type-Options: nosniff\r\n\r\n{}",
      status, reason, text.size(), text);
}

}  // namespace longhaul
