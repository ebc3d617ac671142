"""`tinyserve serve`: starts the engine, then answers over HTTP."""

import argparse
import signal
import socket
import sys

from tinyserve import logger
from tinyserve.engine.arg_utils import engine_config
from tinyserve.engine.async_llm import AsyncLLM


def serve(args: argparse.Namespace) -> None:
    config = engine_config(args)
    logger.decorate("APIServer")
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    with bind(args.host, args.port) as listener:
        logger.info(f"tinyserve API server, model {config['model']['name']}")
        run_server(listener, config)


def run_server(listener: socket.socket, config: dict) -> None:
    with build_engine(config) as engine:
        from tinyserve.entrypoints.api_server import answer_requests

        answer_requests(listener, engine)


def build_engine(config: dict) -> AsyncLLM:
    return AsyncLLM.from_engine_config(config)


def bind(host: str, port: int) -> socket.socket:
    """Takes the port before the long start, but lets nobody connect yet."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener


def _stop(signum: int, frame: object) -> None:
    sys.exit(0)
