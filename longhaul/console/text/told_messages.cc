#include "longhaul/console/text/told_messages.h"

namespace longhaul::console {

bool ToldMessages::is_new(const std::string& message) {
  if (told_.contains(message)) return false;
  if (told_.size() >= kMostKept) told_.clear();
  told_.insert(message);
  return true;
}

}  // namespace longhaul::console
