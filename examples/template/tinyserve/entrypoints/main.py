"""The command `tinyserve`."""

import argparse
import sys

from tinyserve.engine.arg_utils import add_serve_arguments


def main() -> None:
    args = parse_arguments()
    try:
        args.run(args)
    except ValueError as error:
        sys.exit(f"tinyserve: {error}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tinyserve")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve a model over HTTP")
    add_serve_arguments(serve)
    serve.set_defaults(run=_serve)
    bench = commands.add_parser("bench", help="measure the throughput of a running server")
    bench.add_argument("--url", default="http://127.0.0.1:8000")
    bench.add_argument("--requests", type=int, default=10)
    bench.add_argument("--max-tokens", type=int, default=64)
    bench.set_defaults(run=_bench)
    evaluate = commands.add_parser("eval", help="measure the accuracy of the quantized weights")
    evaluate.add_argument("--questions", type=int, default=400)
    evaluate.set_defaults(run=_evaluate)
    return parser.parse_args()


# Imports stand in the functions, so that a server does not wait for what it never uses.
def _serve(args: argparse.Namespace) -> None:
    from tinyserve.entrypoints.serve import serve

    serve(args)


def _bench(args: argparse.Namespace) -> None:
    from tinyserve.entrypoints.bench import bench

    bench(args.url, args.requests, args.max_tokens)


def _evaluate(args: argparse.Namespace) -> None:
    from tinyserve.entrypoints.evaluate import evaluate

    evaluate(args.questions)
