#pragma once

#include "longhaul/status/status_access.h"
#include "longhaul/status/status_options.h"

namespace longhaul {

// A page that somebody asks for; an empty address: nobody does.
struct AskedPage {
  StatusOptions options;
  AccessNames names;  // as whoever asks for it knows them
};

// The program's page, or else that of whoever has started it: of the variables LONGHAUL_STATUS_ADDRESS,
// LONGHAUL_STATUS_TOKEN_FILE and LONGHAUL_STATUS_ALLOWED_HOSTS. So a manifest can have probes of any program.
AskedPage asked_page(const StatusOptions& options_of_program);

}  // namespace longhaul
