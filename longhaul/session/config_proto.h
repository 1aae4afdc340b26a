#pragma once

#include "longhaul/session/session.h"

namespace longhaul {

namespace proto {
class ConfigProto;
class RunOptions;
}  // namespace proto

// The options of a session and of a run as messages have them, in the definition of a server or from a client.
// docs/compatibility.md lists all fields.
//
// UnimplementedError: a field is set that nothing here can heed, also one that is not known by name: no field is
// ignored. The message has its path ("ConfigProto.gpu_options.visible_device_list"). InvalidArgumentError: a value is
// none.
SessionOptions session_options_of(const proto::ConfigProto& config);
RunOptions run_options_of(const proto::RunOptions& options);

// The other way, for messages. UnimplementedError: snapshot_memory, for which messages have no field.
proto::ConfigProto config_proto_of(const SessionOptions& options);

// The config with what it leaves out filled in from a server's defaults; lists are replaced, not joined.
proto::ConfigProto with_defaults(const proto::ConfigProto& config, const proto::ConfigProto& defaults);
// The same of options. A bool that is false counts as left out: what a server switches on, no session switches off.
SessionOptions with_defaults(const SessionOptions& options, const SessionOptions& defaults);

// How many CPU devices they ask for. InvalidArgumentError: none, or devices that are neither CPUs nor GPUs.
int number_of_cpus(const SessionOptions& options);
// How many GPUs they allow: all that there are, unless they tell a number. InvalidArgumentError: it is negative.
int most_gpus(const SessionOptions& options);

// UnimplementedError: an option is set that is for sessions on servers, and which a session of this process cannot
// heed. The message names it.
void check_options_in_process(const SessionOptions& options);

// The same of what only a server can be told, before it starts: its devices, its threads, its memory for snapshots.
void check_options_on_server(const SessionOptions& options);

}  // namespace longhaul
