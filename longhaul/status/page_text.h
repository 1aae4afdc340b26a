#pragma once

namespace longhaul {

// The page: it loads nothing from elsewhere, and shows /status.json and /curves.json, whose texts it inserts as text.
extern const char kPageHtml[], kPageScript[], kPageStyle[];

// /shared.js, which comes before: what pages of this library show alike. The board has it, too.
extern const char kSharedScript[];

}  // namespace longhaul
