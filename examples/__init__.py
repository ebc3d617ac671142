"""Repositories to try firstbad on: see docs/example.md."""
