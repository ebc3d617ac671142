#!/usr/bin/env bash
# The example's failure as a plain script: 0 good, 1 bad, 125 cannot be told.
#
#   in a checkout:  git bisect run /path/to/script.sh    (builds and installs each commit, needs uv)
#   in firstbad:    script: | ...                        (the package is installed already)
#
# PORT chooses the port, TOKENS the number of speculative tokens.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1 # two commits within one second would share a compiled build backend

port=${PORT:-8000}
tokens=${TOKENS:-2}
within_s=60
scratch=$(mktemp -d)
server=

finish() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" || true
    fi
    rm -rf "$scratch"
}
trap finish EXIT

if [ -f pyproject.toml ] && [ -d csrc ]; then
    command -v uv >/dev/null || { echo "script.sh: needs uv to build this checkout" >&2; exit 255; }
    uv build --quiet --offline --wheel --out-dir "$scratch" . || exit 125
    uv venv --quiet --offline "$scratch/venv"
    uv pip install --quiet --offline --python "$scratch/venv/bin/python" "$scratch"/*.whl || exit 125
    PATH=$scratch/venv/bin:$PATH
fi

is_ready() {
    python3 - "$port" 2>/dev/null <<'PYTHON'
import sys
import urllib.request

urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/health", timeout=5)
PYTHON
}

tinyserve serve tiny/next-80b --port "$port" --tensor-parallel-size 4 \
    --speculative-config "{\"method\": \"mtp\", \"num_speculative_tokens\": $tokens}" &
server=$!
until is_ready; do
    kill -0 "$server" 2>/dev/null || { server=; exit 1; }
    [ "$SECONDS" -lt "$within_s" ] || exit 125
    sleep 0.1
done
tinyserve bench --url "http://127.0.0.1:$port" --requests 3
