#pragma once

#include <fmt/format.h>

#include <string>

#include "longhaul/base/error.h"

namespace longhaul {

// "DATA_LOSS: the PNG image is damaged: ...", or "no error".
template <typename Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return fmt::format("{}: {}", code_name(error.code()), error.what());
  }
  return "no error";
}

}  // namespace longhaul
