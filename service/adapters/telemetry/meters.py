"""What one process measures of itself, apart from what the database tells of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, start_http_server
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from service.application.ports import StoreBusy
from service.domain.errors import UserError

#: Seconds; the last is what a clone may take.
STEPS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
OK, REFUSED, BUSY, FAILED = "ok", "refused", "busy", "failed"


class Meters:
    def __init__(self) -> None:
        # A second line for each count, which nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._steps = Histogram(
            "firstbad_step_seconds",
            "What the steps of the service take: submit, prepare, record, advance, release, sweep, send",
            ("step", "result"),
            buckets=STEPS_S,
            registry=self.registry,
        )
        self._transactions = Histogram(
            "firstbad_transaction_seconds",
            "Database transactions, the wait for a connection or a lock included",
            ("result",),
            buckets=STEPS_S,
            registry=self.registry,
        )
        self._messages = Counter(
            "firstbad_messages", "Messages handled, by task and result", ("task", "result"), registry=self.registry
        )
        self._sends = Counter(
            "firstbad_sends",
            "What was taken from the outbox to be sent, by topic and result; what failed is sent again",
            ("topic", "result"),
            registry=self.registry,
        )

    def step(self, name: str, topic: str | None = None) -> AbstractContextManager[None]:
        def over(result: str, seconds: float) -> None:
            self._steps.labels(name, result).observe(seconds)
            if topic is not None:
                self._sends.labels(topic, result).inc()

        return _timed(over)

    def transaction(self) -> AbstractContextManager[None]:
        return _timed(lambda result, seconds: self._transactions.labels(result).observe(seconds))

    def serve(self, host: str, port: int) -> None:
        """Tells them to who asks there, in a thread of its own. Errors: OSError, which names the setting."""
        try:
            start_http_server(port, host, self.registry)
        except OSError as error:
            raise OSError(f"FIRSTBAD_METRICS_PORT: port {port} of {host}: {error.strerror}; name another") from error

    def handled(self, task: str, result: str) -> None:
        self._messages.labels(task, result).inc()


@contextmanager
def _timed(over: Callable[[str, float], None]) -> Iterator[None]:
    """`over` is told the result, and how many seconds it took."""
    began, result = perf_counter(), OK
    try:
        yield
    except BaseException as error:
        result = result_of(error)
        raise
    finally:
        over(result, perf_counter() - began)


def result_of(error: BaseException) -> str:
    """What a user has done wrong is no failure of ours."""
    if isinstance(error, UserError):
        return REFUSED
    return BUSY if isinstance(error, StoreBusy) else FAILED
