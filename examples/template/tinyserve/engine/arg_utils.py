"""Arguments of `tinyserve serve`, and the one dictionary that every process is configured by."""

import argparse

from tinyserve.config.compilation import capture_sizes
from tinyserve.config.model import model_config
from tinyserve.config.speculative import parse_speculative_config


def add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name")
    parser.add_argument("--tensor-parallel-size", "-tp", type=int, default=4)
    parser.add_argument("--speculative-config", help="JSON with method and num_speculative_tokens")
    parser.add_argument("--max-num-seqs", type=int, default=48)
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.9)


def engine_config(args: argparse.Namespace) -> dict:
    """Raises ValueError when an argument is out of its range."""
    if not 1 <= args.tensor_parallel_size <= 64:
        raise ValueError(f"--tensor-parallel-size must be 1 to 64: {args.tensor_parallel_size}")
    if not 1 <= args.max_num_seqs <= 1024:
        raise ValueError(f"--max-num-seqs must be 1 to 1024: {args.max_num_seqs}")
    speculative = parse_speculative_config(args.speculative_config) if args.speculative_config else None
    return {
        "model": model_config(args.model),
        "served_model_name": args.served_model_name or args.model,
        "tensor_parallel_size": args.tensor_parallel_size,
        "num_speculative_tokens": speculative["num_speculative_tokens"] if speculative else 0,
        "capture_sizes": capture_sizes(args.max_num_seqs),
        "max_model_len": args.max_model_len,
        "gpu_memory_utilization": args.gpu_memory_utilization,
    }
