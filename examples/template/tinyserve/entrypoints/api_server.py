"""The HTTP API: /health, /v1/models, /v1/completions."""

import json
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tinyserve import logger
from tinyserve.engine.async_llm import AsyncLLM

MAX_TOKENS = 4096


def answer_requests(listener: socket.socket, engine: AsyncLLM) -> None:
    """Serves until the process is told to stop. One request at a time reaches the engine."""
    server = ThreadingHTTPServer(listener.getsockname()[:2], handler(engine), bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.server_activate()
    host, port = listener.getsockname()[:2]
    logger.info(f"Application startup complete, listening on http://{host}:{port}")
    server.serve_forever(poll_interval=60)


def handler(engine: AsyncLLM) -> type[BaseHTTPRequestHandler]:
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/health":
                self.answer(HTTPStatus.OK, {})
            elif self.path == "/v1/models":
                self.answer(HTTPStatus.OK, models(engine.config))
            else:
                self.answer(HTTPStatus.NOT_FOUND, {"error": f"nothing at {self.path}"})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.path != "/v1/completions":
                self.answer(HTTPStatus.NOT_FOUND, {"error": f"nothing at {self.path}"})
                return
            try:
                prompt, max_tokens = read_completion_request(body)
            except ValueError as error:
                self.answer(HTTPStatus.BAD_REQUEST, {"error": str(error)})
                return
            with turn:
                text = engine.generate(prompt, max_tokens)
            self.answer(HTTPStatus.OK, completion(engine.config, prompt, text))

        def answer(self, status: HTTPStatus, content: dict) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            import sys

            sys.stderr.write("INFO:     %s:%d - %s\n" % (*self.client_address[:2], format % args))

    return Handler


def read_completion_request(body: bytes) -> tuple[str, int]:
    """Raises ValueError with the reason when the body is no completion request."""
    request = json.loads(body)
    if not isinstance(request, dict) or not isinstance(request.get("prompt"), str):
        raise ValueError("prompt must be a string")
    max_tokens = request.get("max_tokens", 16)
    if not isinstance(max_tokens, int) or not 1 <= max_tokens <= MAX_TOKENS:
        raise ValueError(f"max_tokens must be 1 to {MAX_TOKENS}")
    if "\0" in request["prompt"]:
        raise ValueError("prompt must hold no NUL")
    return request["prompt"], max_tokens


def models(config: dict) -> dict:
    return {"object": "list", "data": [{"id": config["served_model_name"], "object": "model"}]}


def completion(config: dict, prompt: str, text: str) -> dict:
    usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
    choice = {"index": 0, "text": text, "finish_reason": "length"}
    return {"object": "text_completion", "model": config["served_model_name"], "choices": [choice], "usage": usage}
