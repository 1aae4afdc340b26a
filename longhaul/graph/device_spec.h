#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace longhaul {

// A full or partial device name: "/job:worker/replica:0/task:1/device:CPU:0", or short "/cpu:0".
struct DeviceSpec {
  std::string job;
  std::optional<int> replica, task;
  std::string type;  // "CPU", "GPU"
  std::optional<int> index;

  // InvalidArgumentError: a part of the text is none of these.
  static DeviceSpec parse(std::string_view text);

  // Returns `inner` with its unspecified parts filled in from this one, for nested device scopes.
  DeviceSpec merged_with(const DeviceSpec& inner) const;

  // Returns the parts that either specifies. InvalidArgumentError: they contradict each other ("Cannot merge devices
  // with incompatible jobs: '/job:ps' and '/job:worker'").
  DeviceSpec combined_with(const DeviceSpec& other) const;

  // Whether the device of that full name has all parts that this specifies.
  bool matches(const DeviceSpec& full) const;
  DeviceSpec without_type() const;  // and without index: what is left names a task, or a job
  std::string to_string() const;
  bool operator==(const DeviceSpec&) const = default;
};

}  // namespace longhaul
