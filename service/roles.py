"""What the processes of a service do until they are told to end: the API, and the control worker."""

from __future__ import annotations

import signal
import socket
import sys

from service.listener import name_of
from service.wiring import Wired


def serve(wired: Wired, listen_fd: int) -> None:
    import uvicorn

    from service.web import LOOPBACK, create_app

    ours = name_of(str(wired.settings.host))
    hosts = (*LOOPBACK, ours, *sorted(wired.settings.allowed_hosts))
    app = create_app(wired.flow, allowed_hosts=hosts, meters=wired.telemetry.meters.registry)
    # Uvicorn sends the signal on when it has ended by it, which would end us before we have told the last spans.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=listen_fd)])


def consume(wired: Wired) -> None:
    """Errors: OSError, where its metrics cannot be told."""
    from service import inbox

    settings = wired.settings
    if settings.metrics_port:
        wired.telemetry.meters.serve(str(settings.host), settings.metrics_port)
    inbox.run(str(settings.redis_url), wired.flow, wired.queue, settings.sweep_s, wired.telemetry.meters)
