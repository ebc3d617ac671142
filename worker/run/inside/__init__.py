"""What runs inside every sandbox, beside the reproduction: does the phases, keeps the log, writes the outcome.

Standard library only and Python 3.9 or newer, because it is mounted into images that hold nothing of ours. It is
started anew for each run, so that each import counts: `json`, `signal` or `subprocess` take longer than all the rest.

It reads in/order.json and writes out/outcome.json, out/log and, once the log is over half its cap, out/log.1 and
out/log.2. In a PID namespace it is process 1: nothing inside can kill it, and everything ends with it. What it writes
is not trusted by the worker that reads it.
"""
