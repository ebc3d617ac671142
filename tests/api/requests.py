"""Requests as users write them."""

from __future__ import annotations

from typing import Any

from service.application.submission import Submission

MINIMAL: dict[str, Any] = {"repo": "https://git.example.org/x.git", "good": "v1", "bad": "main", "script": "false"}

SUBMISSION = Submission(good=("v1",), bad="main", repo=MINIMAL["repo"], script="false", project="source")

YAML = """\
# everything that a request can hold
project: python
repo: https://git.example.org/x.git
good: [072d7e5, 0.10]
bad: 1234567
build: python -m build --wheel
image: debian:12
network: none
env: {LEVEL: 1, FAST: yes, RATE: 0.10, NOTHING: ""}
serve:
  command: >-
    tinyserve serve
    --num_speculative_tokens 2
  ready: {http: /health, within: 20m}
check: |
  curl -f localhost:8000/v1/completions
failure: "capture sizes: must be multiples"
sandbox: docker
width: 3
first_parent: true
flaky: true
timeout: 1h30m
hang: bad
package: tinyserve
wheel_paths: [tinyserve/**, csrc/**, /pyproject.toml]
native_paths: csrc/**
overlay: make overlay
deps:
  as_of: 2025-09-25
  constraints: |
    torch==2.8.0
fixups:
- {range: v1..0.10, cherry_pick: 1234567}
- range: v1..v2
  patch: |
    --- a/x
    +++ b/x
failure_in: run
control:
  replace: {"num_speculative_tokens 2": num_speculative_tokens 3}
other_failures: bad
resources: {gpus: 4, gpu: H800|H100, shm: 16GiB, memory: 68719476736, cpus: 0.5, pids: 4096, labels: nvlink,
  models: [Qwen/Qwen3-8B]}
priority: high
budget: {probes: 40, wall: 6h, gpu_hours: 20}
secrets: [HF_TOKEN]
model_cache: none
pasted: no
"""
