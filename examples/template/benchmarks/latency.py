"""Prints the mean latency of a completion."""

import sys
import time

from tinyserve.entrypoints.bench import complete

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
started = time.perf_counter()
for number in range(20):
    complete(url, f"latency {number}", 16)
print(f"Mean latency: {(time.perf_counter() - started) / 20 * 1000:.2f} ms")
