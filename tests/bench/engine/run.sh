#!/usr/bin/env bash
# run.sh: the engine's figures, as docs/operations.md has them. Builds the release preset.
set -euo pipefail
cd "$(dirname "$0")/../../.."
cmake --preset release >/dev/null
cmake --build build/release --target engine_bench qualify
build/release/tests/bench/engine/engine_bench "$@"
tests/bench/engine/daemon_idle.sh "$PWD/build/release/orchestrator/cli/qualify"
