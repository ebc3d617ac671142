"""Redis: whether it answers, keeps what it is given, agrees about the time, and what the service says there."""

from __future__ import annotations

import statistics
import time
from typing import Any

import redis

from worker.build.source import redacted
from worker.contract import SERVICE_KEY, VERSION
from worker.doctor.finding import Finding, Findings, ok, problem, warning
from worker.node import connect
from worker.reading import mismatch, version_said

PINGS = 5
#: Seconds: what takes longer is felt in every heartbeat; clocks that are apart so far spoil times, and then signatures.
SLOW_S, OFF_S, FAR_OFF_S = 0.05, 2.0, 300.0
#: The share of its memory that a Redis may have used.
FULL = 0.9


def broker(url: str, node: str) -> Findings:
    client, name = connect(url), redacted(url)
    try:
        took = sorted(_timed(client.ping) for _ in range(PINGS))
        info: dict[str, Any] = client.info()
    except redis.RedisError as error:
        yield _away(name, error)
        return
    finally:
        client.close()
    yield _speed(name, str(info.get("redis_version", "of an unknown version")), statistics.median(took))
    yield from _role(info)
    yield from _memory(client, info)
    yield _kept(info)
    yield from _clock(client)
    yield from _service(client, node)


def _timed(call: Any) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def _away(name: str, error: redis.RedisError) -> Finding:
    said = str(error)
    if isinstance(error, redis.AuthenticationError) or "NOAUTH" in said or "WRONGPASS" in said:
        advice = "Put the password into FIRSTBAD_REDIS_URL: redis://:PASSWORD@host:6379/0"
        return problem("redis", f"{name} asks for another password: {said}", advice)
    if isinstance(error, redis.TimeoutError):
        advice = "See whether Redis hangs or a firewall drops packets: redis-cli -u … ping"
        return problem("redis", f"{name} does not answer in time: {said}", advice)
    if isinstance(error, redis.ConnectionError):
        advice = "Start Redis, or correct FIRSTBAD_REDIS_URL; it must listen on an address that this node reaches."
        return problem("redis", f"{name} cannot be reached: {said}", advice)
    return problem("redis", f"{name} fails: {said}", "See the log of Redis.")


def _speed(name: str, version: str, took_s: float) -> Finding:
    found = f"{name}, Redis {version}, answers in {took_s * 1000:.1f} ms"
    if took_s > SLOW_S:
        return warning("redis", found, "Use a Redis that is nearer: orders and cancels wait for it.")
    return ok("redis", found)


def _role(info: dict[str, Any]) -> Findings:
    if info.get("role") not in (None, "master"):
        found = f"it is a {info['role']}, which takes no writes"
        yield problem("redis.role", found, "Name the primary in FIRSTBAD_REDIS_URL.")


def _memory(client: redis.Redis, info: dict[str, Any]) -> Findings:
    """A Redis that forgets what is old when it is full forgets orders and leases."""
    policy, most, used = info.get("maxmemory_policy"), int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    if policy is None:
        yield ok("redis.memory", "it does not tell its maxmemory-policy")
    elif most and policy != "noeviction":
        found = f"maxmemory-policy is {policy} at a maxmemory of {most} bytes: a full Redis forgets orders and leases"
        yield problem("redis.memory", found, "redis-cli config set maxmemory-policy noeviction, and in redis.conf too.")
    elif policy != "noeviction":
        found = f"maxmemory-policy is {policy}; there is no maxmemory, so that nothing is forgotten yet"
        yield warning("redis.memory", found, "Set maxmemory-policy to noeviction before anybody limits its memory.")
    elif most and used > FULL * most:
        yield warning(
            "redis.memory", f"{used} of {most} bytes are used", "Raise maxmemory: a full Redis takes no orders."
        )
    else:
        yield ok("redis.memory", f"maxmemory-policy is {policy}, {used} bytes used of {most or 'all there are'}")


def _kept(info: dict[str, Any]) -> Finding:
    aof = bool(int(info.get("aof_enabled", 0)))
    if info.get("rdb_last_bgsave_status", "ok") != "ok" or (aof and info.get("aof_last_write_status", "ok") != "ok"):
        found = "its last write to disk failed, and it may refuse to be written meanwhile"
        return problem("redis.disk", found, "See the disk and the log of Redis.")
    kept = (
        "an append-only file" if aof else "nothing that survives it for certain; the service sends again what is lost"
    )
    return ok("redis.disk", f"it keeps {kept}")


def _clock(client: redis.Redis) -> Findings:
    try:
        before = time.time()
        seconds, micros = client.time()
        after = time.time()
    except redis.RedisError as error:
        yield warning("clock", f"Redis does not tell the time: {error}", "Allow this user the command TIME.")
        return
    offset = (before + after) / 2 - (int(seconds) + int(micros) / 1e6)
    found = f"this node is {abs(offset):.1f} s {'ahead of' if offset >= 0 else 'behind'} Redis"
    advice = "Let both keep their time (chrony, systemd-timesyncd)."
    if abs(offset) > FAR_OFF_S:
        yield problem("clock", found, f"{advice} An S3 store refuses requests that are so far off.")
    elif abs(offset) > OFF_S:
        yield warning("clock", found, advice)
    else:
        yield ok("clock", found)


def _service(client: redis.Redis, node: str) -> Findings:
    try:
        said = client.get(SERVICE_KEY)
    except redis.RedisError as error:
        yield problem("service", f"Redis cannot be read: {error}", "Allow this user to read and write firstbad:*.")
        return
    if said is None:
        found = "no service has said which version it has: none runs on this Redis, or an older one"
        yield warning(
            "service", found, "Start the control plane, or see whether both name the same FIRSTBAD_REDIS_URL."
        )
        return
    wrong = mismatch(version_said(said), node)
    if wrong:
        message, _, advice = wrong.partition(". ")
        yield problem("service", message, advice)
    else:
        yield ok("service", f"version {VERSION} of the contract, as this worker")
