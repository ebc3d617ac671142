"""`tinyserve bench`: sends requests one after another and sums up."""

import json
import time
import urllib.error
import urllib.request


def bench(url: str, requests: int, max_tokens: int) -> None:
    """Raises ValueError when the server does not answer."""
    if requests < 1:
        raise ValueError(f"--requests must be at least 1: {requests}")
    started = time.perf_counter()
    try:
        usages = [complete(url, f"request {number}", max_tokens) for number in range(requests)]
    except (urllib.error.URLError, ConnectionError) as error:
        raise ValueError(f"{url} does not answer: {error}") from error
    report(usages, time.perf_counter() - started)


def complete(url: str, prompt: str, max_tokens: int) -> dict:
    body = json.dumps({"prompt": prompt, "max_tokens": max_tokens}).encode()
    request = urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)["usage"]


def report(usages: list[dict], seconds: float) -> None:
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
    print("=" * 50)


def line(label: str, value: object) -> str:
    return f"{label:<40} {value:<10}".rstrip()
