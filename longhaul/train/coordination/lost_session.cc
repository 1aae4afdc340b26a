#include "longhaul/train/coordination/lost_session.h"

namespace longhaul {

bool is_lost_session(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return is_lost_session(known);
  } catch (...) {
    return false;
  }
}

}  // namespace longhaul
