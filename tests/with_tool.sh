#!/usr/bin/env bash
# with_tool.sh TOOL COMMAND...: runs the command; where TOOL is not installed, ends with 77, which ctest counts as
# skipped.
tool=$1
shift
command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
exec "$@"
