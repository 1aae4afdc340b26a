// The head of a request of HTTP. Whatever it is, there is a whole reply, a query is within its bounds, and the values
// of a board's queries are read or refused.
#include "longhaul/base/error.h"
#include "longhaul/console/board/query_values.h"
#include "longhaul/status/http_protocol.h"
#include "tests/fuzz/quiet.h"

namespace longhaul {
namespace {

template <typename Read>
void read_or_refuse(Read&& read) {
  try {
    read();
  } catch (const InvalidArgumentError&) {
  }
}

HttpReply answer(const HttpRequest& request) {
  if (request.query.size() > 16) __builtin_trap();
  for (const auto& [name, value] : request.query) {
    if (name.size() > 64 || value.size() > 1024) __builtin_trap();
    read_or_refuse([&] {
      const int64_t number = console::integer_in(request.query, name, -5, 5);
      if (number < -5 || number > 5) __builtin_trap();
    });
    read_or_refuse([&] {
      const double number = console::number_in(request.query, name, 0, 1, 0);
      if (!(number >= 0 && number <= 1)) __builtin_trap();
    });
    read_or_refuse([&] {
      const auto numbers = console::integers_in(request.query, name, 9, 4);
      if (numbers.empty() || numbers.size() > 4) __builtin_trap();
    });
  }
  return text_reply(200, "ok\n");
}

}  // namespace
}  // namespace longhaul

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  static const auto& protocol = *new HttpProtocol(answer);
  const std::string reply = protocol.reply_to({reinterpret_cast<const char*>(data), size});
  if (!reply.starts_with("HTTP/1.1 ") || reply.find("\r\n\r\n") == reply.npos) __builtin_trap();
  return 0;
}
