#include "longhaul/train/status/asked_page.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

std::string value_of(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

// One that changes nothing.
void tell_of_variable(const std::string& variable, const std::string& why) {
  if (!value_of(variable).empty()) log_warning("{} is set in vain: {}", variable, why);
}

// "a,b": both; empty parts are none.
std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    if (!part.empty()) parts.emplace_back(part);
    list.remove_prefix(std::min(list.size(), part.size() + 1));
  }
  return parts;
}

}  // namespace

AskedPage asked_page(const StatusOptions& options_of_program) {
  if (!options_of_program.address.empty()) {
    tell_of_variable("LONGHAUL_STATUS_ADDRESS", "the program has a page of its own, at " + options_of_program.address);
    return {options_of_program, {"chief.status.address", "chief.status.token_file", "chief.status.allowed_hosts"}};
  }
  AskedPage asked{options_of_program,
                  {"LONGHAUL_STATUS_ADDRESS", "LONGHAUL_STATUS_TOKEN_FILE", "LONGHAUL_STATUS_ALLOWED_HOSTS"}};
  asked.options.address = value_of(asked.names.address);
  if (asked.options.address.empty()) {
    tell_of_variable(asked.names.token_file, asked.names.address + " asks for no page");
    return asked;
  }
  if (const std::string file = value_of(asked.names.token_file); !file.empty()) asked.options.token_file = file;
  const std::vector<std::string> hosts = parts_of(value_of(asked.names.allowed_hosts));
  asked.options.allowed_hosts.insert(asked.options.allowed_hosts.end(), hosts.begin(), hosts.end());
  return asked;
}

}  // namespace longhaul
