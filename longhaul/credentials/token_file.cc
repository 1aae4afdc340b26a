#include "longhaul/credentials/token_file.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/credentials/private_file.h"

namespace longhaul {
namespace {

constexpr size_t kShortestToken = 16, kLongestToken = 1024, kMostTokens = 16;
constexpr Seconds kBetweenLooks{1};

[[noreturn]] void refuse_tokens(const std::string& path, const std::string& why) {
  throw InvalidArgumentError(fmt::format("security: {}: {}", path, why));
}

void check_token(const std::string& path, size_t number, std::string_view token) {
  if (token.size() < kShortestToken || token.size() > kLongestToken) {
    refuse_tokens(path,
                  fmt::format("the token in line {} has {} letters; it must have {} to {}: make one with `openssl "
                              "rand -hex 32`",
                              number, token.size(), kShortestToken, kLongestToken));
  }
  const auto is_letter = [](unsigned char c) { return c > ' ' && c < 0x7f; };
  if (!std::all_of(token.begin(), token.end(), is_letter)) {
    refuse_tokens(path,
                  fmt::format("the token in line {} has a space, or a letter that is not printable ASCII", number));
  }
}

bool is_same(std::string_view given, const std::string& token) {
  return given.size() == token.size() && CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

}  // namespace

std::vector<std::string> parse_tokens(const std::string& path, std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    check_token(path, number, line);
    tokens.emplace_back(line);
  }
  if (tokens.empty()) refuse_tokens(path, "there is no token in it: make one with `openssl rand -hex 32`");
  if (tokens.size() > kMostTokens) refuse_tokens(path, fmt::format("it has more than {} tokens", kMostTokens));
  return tokens;
}

TokenFile::TokenFile(std::string path, Clock& clock)
    : path_(std::move(path)), clock_(clock), tokens_(read()), looked_at_(clock.now()) {}

std::vector<std::string> TokenFile::read() const {
  return parse_tokens(path_, read_private_file(path_));
}

std::string TokenFile::token() {
  return tokens()[0];
}

bool TokenFile::accepts(std::string_view given) {
  bool accepted = false;
  for (const std::string& token : tokens()) accepted |= is_same(given, token);
  return accepted;
}

std::vector<std::string> TokenFile::tokens() {
  if (take_turn()) read_again();
  MutexLock lock(mutex_);
  return tokens_;
}

// Whether it is time to read it again, and this call does it.
bool TokenFile::take_turn() {
  const Seconds now = clock_.now();
  MutexLock lock(mutex_);
  if (now - looked_at_ < kBetweenLooks) return false;
  looked_at_ = now;
  return true;
}

// Whether or not its time of modification says that it has changed: that can be set.
void TokenFile::read_again() {
  try {
    std::vector<std::string> tokens = read();
    MutexLock lock(mutex_);
    tokens_ = std::move(tokens);
    problem_.clear();
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void TokenFile::fail(const std::string& why) {
  {
    MutexLock lock(mutex_);
    if (std::exchange(problem_, why) == why) return;
  }
  log_error("the token file has changed and cannot be used; the tokens that were in it before stay valid: {}", why);
}

}  // namespace longhaul
