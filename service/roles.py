"""What the processes of a service do until they are told to end: the API, and the control worker."""

from __future__ import annotations

import signal
import socket
from urllib.parse import urlsplit

from service import wiring
from service.listener import name_of
from service.wiring import Wired


def serve(wired: Wired, listen_fd: int, own_key: str = "") -> None:
    """`own_key`: of who started it, to look whether it is ready."""
    import uvicorn

    from service.doors.gate import Gate
    from service.web import LOOPBACK, create_app

    settings = wired.settings
    gate = Gate(open=settings.open, public=settings.public, rate=settings.rate, own=own_key)
    ours = name_of(str(wired.settings.host))
    site = urlsplit(settings.site).hostname if settings.site else None
    hosts = (*LOOPBACK, ours, *([site] if site else []), *sorted(wired.settings.allowed_hosts))
    signing_in = None if settings.open else wiring.sign_in(wired)
    app = create_app(
        wired.flow, allowed_hosts=hosts, meters=wired.telemetry.meters.registry, gate=gate, sign_in=signing_in
    )

    def end(*_: object) -> None:
        """Uvicorn raises the signal again that it ended by. It ends the process, whatever threads still wait for, but
        not before the last spans are told."""
        wired.telemetry.tracing.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=listen_fd)])


def consume(wired: Wired) -> None:
    """Errors: OSError, where its metrics cannot be told."""
    from service import inbox

    settings = wired.settings
    if settings.metrics_port:
        wired.telemetry.meters.serve(str(settings.host), settings.metrics_port)
    inbox.run(str(settings.redis_url), wired.flow, wired.queue, settings.sweep_s, wired.telemetry.meters)
