"""`tinyserve bench`: sends requests one after another and sums up."""

import itertools
import json
import statistics
import time
import urllib.error
import urllib.request


def bench(url: str, requests: int, max_tokens: int) -> None:
    """Raises ValueError when the server does not answer."""
    if requests < 1:
        raise ValueError(f"--requests must be at least 1: {requests}")
    usages, ends = [], [time.perf_counter()]
    try:
        for number in range(requests):
            usages.append(complete(url, f"request {number}", max_tokens))
            ends.append(time.perf_counter())
    except (urllib.error.URLError, ConnectionError) as error:
        raise ValueError(f"{url} does not answer: {error}") from error
    report(usages, [1000 * (end - start) for start, end in itertools.pairwise(ends)])


def complete(url: str, prompt: str, max_tokens: int) -> dict:
    body = json.dumps({"prompt": prompt, "max_tokens": max_tokens}).encode()
    request = urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)["usage"]


def report(usages: list[dict], latencies_ms: list[float]) -> None:
    seconds = sum(latencies_ms) / 1000
    prompt = sum(usage["prompt_tokens"] for usage in usages)
    generated = sum(usage["completion_tokens"] for usage in usages)
    print(" Serving Benchmark Result ".center(50, "="))
    print(line("Successful requests:", len(usages)))
    print(line("Benchmark duration (s):", f"{seconds:.2f}"))
    print(line("Total input tokens:", prompt))
    print(line("Total generated tokens:", generated))
    print(line("Request throughput (req/s):", f"{len(usages) / seconds:.2f}"))
    print(line("Output token throughput (tok/s):", f"{generated / seconds:.2f}"))
    print(line("Total token throughput (tok/s):", f"{(prompt + generated) / seconds:.2f}"))
    print("End-to-end Latency".center(50, "-"))
    print(line("Mean E2EL (ms):", f"{statistics.fmean(latencies_ms):.2f}"))
    print(line("Median E2EL (ms):", f"{statistics.median(latencies_ms):.2f}"))
    print(line("P99 E2EL (ms):", f"{percentile(latencies_ms, 99):.2f}"))
    print("=" * 50)


def line(label: str, value: object) -> str:
    return f"{label:<40} {value:<10}".rstrip()


def percentile(values: list[float], percent: int) -> float:
    """The least value that so many percent of all do not exceed."""
    return sorted(values)[(len(values) * percent + 99) // 100 - 1]
