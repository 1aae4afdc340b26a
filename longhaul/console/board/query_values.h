#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/status/http_reply.h"

namespace longhaul::console {

// What a client asks for by numbers. InvalidArgumentError, which names the parameter and what it may be: it is not a
// number, lies outside of the range, or is missing and has no default.
int64_t integer_in(const HttpQuery& query, const std::string& name, int64_t lowest, int64_t highest,
                   std::optional<int64_t> otherwise = std::nullopt);
double number_in(const HttpQuery& query, const std::string& name, double lowest, double highest, double otherwise);
// "0,3,7": 1 to `most` of them, each once.
std::vector<int64_t> integers_in(const HttpQuery& query, const std::string& name, int64_t highest, size_t most);

}  // namespace longhaul::console
