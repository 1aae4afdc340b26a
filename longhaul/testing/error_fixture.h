#pragma once

#include <exception>
#include <string>
#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {

// The message of what `body` throws, which must be an `Expected`: anything else fails the test. "" if it throws
// nothing.
template <typename Expected = std::exception, typename Body>
std::string error_of(Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

// The same of an InvalidArgumentError.
template <typename Body>
std::string refusal_of(Body&& body) {
  return error_of<InvalidArgumentError>(std::forward<Body>(body));
}

// The same of any of our errors, with its code: "DATA_LOSS: the PNG image is damaged: ...".
template <typename Body>
std::string coded_error_of(Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (const Error& error) {
    return std::string(code_name(error.code())) + ": " + error.what();
  }
  return "";
}

}  // namespace longhaul
