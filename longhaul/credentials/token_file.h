#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// The lines of a token file, without empty ones. InvalidArgumentError, which names `path` and not the token: there is
// none, or more than 16; one has fewer than 16 or more than 1024 letters, or another letter than a printable one of
// ASCII, or a space.
std::vector<std::string> parse_tokens(const std::string& path, std::string_view text);

// A token that goes with each call, and those that are accepted: the first line of a file, and all of them. The file is
// read again once a second at most, in the call that asks. So a token is
// replaced without a call that fails: add the new one as a second line everywhere, then put it first everywhere, then
// take the old one out.
//
// A change that cannot be used (a missing file, an empty one, one that others may read) is an error in the log, once,
// with the remedy, and the tokens that were there stay until it can be. Any thread may call.
class TokenFile {
 public:
  // Reads the file: the errors of read_private_file(), and those of parse_tokens(). `clock` must outlive this object.
  TokenFile(std::string path, Clock& clock);

  std::string token() EXCLUDES(mutex_);
  // Whether this is one of the tokens. The time that it takes tells only how long they are.
  bool accepts(std::string_view given) EXCLUDES(mutex_);

 private:
  std::vector<std::string> read() const;
  std::vector<std::string> tokens() EXCLUDES(mutex_);
  bool take_turn() EXCLUDES(mutex_);
  void read_again() EXCLUDES(mutex_);
  void fail(const std::string& why) EXCLUDES(mutex_);

  const std::string path_;
  Clock& clock_;
  Mutex mutex_;
  std::vector<std::string> tokens_ GUARDED_BY(mutex_);
  Seconds looked_at_ GUARDED_BY(mutex_);
  std::string problem_ GUARDED_BY(mutex_);  // that was logged; empty: none since the file was last right
};

}  // namespace longhaul
