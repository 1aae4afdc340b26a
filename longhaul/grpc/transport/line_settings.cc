#include "longhaul/grpc/transport/line_settings.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpc/impl/codegen/compression_types.h>

#include <algorithm>
#include <climits>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

int milliseconds(Seconds time) {
  return static_cast<int>(std::clamp(time.count() * 1000, 1.0, static_cast<double>(INT_MAX)));
}

// gRPC's own check has an int; -1 leaves the check to read_frame(), and 32 bits of length.
int most_received(const FrameLimits& frames) {
  return frames.most_bytes > INT_MAX ? -1 : static_cast<int>(frames.most_bytes);
}

std::vector<LineSetting> settings_of_both(const TransportLimits& limits, const FrameLimits& frames) {
  constexpr int kOnlyUncompressed = 1 << GRPC_COMPRESS_NONE;  // so nothing small becomes huge
  return {
      {GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(TransportLimits::kAskAfter)},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(limits.lost_line)},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
      {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, most_received(frames)},
      {GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1},
      {GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, kOnlyUncompressed},
  };
}

}  // namespace

std::vector<LineSetting> caller_settings(const TransportLimits& limits, const FrameLimits& frames) {
  std::vector<LineSetting> settings = settings_of_both(limits, frames);
  settings.insert(settings.end(), {
                                      {GRPC_ARG_ENABLE_RETRIES, 0},
                                      {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},
                                      {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100},
                                      {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000},
                                      // The limit of one attempt, in spite of its name.
                                      {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, std::min(2000, milliseconds(limits.connect))},
                                      {GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000},
                                      {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
                                      {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
                                      {GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX},
                                  });
  return settings;
}

std::vector<LineSetting> server_settings(const TransportLimits& limits, const FrameLimits& frames) {
  std::vector<LineSetting> settings = settings_of_both(limits, frames);
  settings.insert(settings.end(), {
                                      {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0},
                                      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10},
                                      {GRPC_ARG_ALLOW_REUSEPORT, 0},
                                      {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds(limits.connect)},
                                  });
  return settings;
}

void check_lost_line(Seconds lost_line, const std::string& what) {
  constexpr Seconds kShortest{0.1}, kLongest{3600};
  if (lost_line >= kShortest && lost_line <= kLongest) return;  // false for NaN
  throw InvalidArgumentError(fmt::format("{}: {:.6g} s are not from {} s to {} s", what, lost_line.count(),
                                         kShortest.count(), kLongest.count()));
}

uint64_t most_frame_bytes(const FrameLimits& frames) {
  return std::min<uint64_t>(frames.most_bytes, UINT32_MAX);
}

}  // namespace longhaul
