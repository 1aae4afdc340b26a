#include "longhaul/train/coordination/checked_options.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"

namespace longhaul {

void check_not_negative(std::string_view option, double value) {
  if (value >= 0) return;
  throw InvalidArgumentError(fmt::format("{} is {:g}: it must be 0 or more", option, value));
}

void check_file_name(std::string_view option, std::string_view name) {
  if (!name.empty() && name.find('/') == std::string_view::npos) return;
  throw InvalidArgumentError(fmt::format(
      "{} is '{}': it must be the name of a file, without '/'. It is put into the directory of the other option",
      option, excerpt(name)));
}

}  // namespace longhaul
