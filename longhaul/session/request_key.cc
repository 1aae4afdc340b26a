#include "longhaul/session/request_key.h"

namespace longhaul {

std::string key_of(const Session::Request& request) {
  std::string key(request.options.snapshot ? "s" : "-");
  const auto append = [&](const void* node, int index) {
    key.append(reinterpret_cast<const char*>(&node), sizeof node);
    key.append(reinterpret_cast<const char*>(&index), sizeof index);
  };
  for (const Output& feed : request.feeds) append(feed.op().node(), feed.index());
  append(nullptr, 0);
  for (const Fetch::Target& fetch : request.fetches) append(fetch.op.node(), fetch.index);
  return key;
}

}  // namespace longhaul
