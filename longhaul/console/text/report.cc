#include "longhaul/console/text/report.h"

namespace longhaul::console {
namespace {

constexpr int kFormat = 1;

}  // namespace

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json json_of(const char* command) {
  Json json = Json::object();
  json["format"] = kFormat;
  json["command"] = command;
  return json;
}

}  // namespace longhaul::console
