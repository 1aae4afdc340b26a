#include "longhaul/binding/autocast.h"

#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace longhaul {
namespace {

// What libtorch's functions for it do, whose names differ from version to version.
bool is_autocast_on() {
  return !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutocastCPU);
}

void set_autocast(bool is_on) {
  c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::AutocastCPU, !is_on);
}

}  // namespace

Autocast::Autocast() : was_on_(is_autocast_on()) {
  set_autocast(true);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  set_autocast(was_on_);
}

void clear_autocast_cache() {
  at::autocast::clear_cache();
}

}  // namespace longhaul
