"""The client of a firstbad service: docs/client.md."""

from firstbad.client import Client, NoService, ProblemError

__all__ = ["Client", "NoService", "ProblemError"]
