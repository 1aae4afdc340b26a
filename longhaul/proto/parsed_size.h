#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <optional>
#include <string_view>

// A message may be many times larger in memory than in a file: two bytes say "another node", which takes 200. What
// comes from a file is measured before it is parsed, without taking memory for it.
namespace longhaul::proto {

// How many bytes of memory a message of that type takes at most, besides itself, for what is in `bytes`. Stops above
// `most`, with what was counted so far. Nothing: it is malformed, or nested deeper than `deepest`.
std::optional<uint64_t> parsed_size(const google::protobuf::Descriptor& type, std::string_view bytes, int deepest = 100,
                                    uint64_t most = UINT64_MAX);

// The same for the text form, by its brackets, texts and separators.
uint64_t parsed_text_size(const google::protobuf::Descriptor& type, std::string_view text, uint64_t most = UINT64_MAX);

// The limit of everything that is parsed: 64 MiB, and 16 bytes for each byte of the file. Honest graphs take 6 to 9.
inline constexpr uint64_t kParsedBase = uint64_t{64} << 20;
inline constexpr uint64_t kParsedPerByte = 16;
constexpr uint64_t most_parsed_size(uint64_t bytes) {
  return kParsedBase + kParsedPerByte * bytes;
}

// Parses if that takes no more than most_parsed_size(). False: it would, or the bytes are malformed.
bool parse_within_limits(std::string_view bytes, google::protobuf::Message* message);

}  // namespace longhaul::proto
