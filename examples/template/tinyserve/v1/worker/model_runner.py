"""Runs the model of one rank: loads it, captures its graphs, makes tokens."""

from tinyserve import _native, logger
from tinyserve.model_executor.loader import load_model
from tinyserve.utils import cdiv, round_up
from tinyserve.v1.attention.backends.linear_attn import LinearAttentionBuilder
from tinyserve.v1.attention.backends.utils import AttentionMetadata
from tinyserve.v1.sampler import sample
from tinyserve.v1.scheduler import decode_steps
from tinyserve.v1.spec_decode import decode_query_len


class ModelRunner:
    def __init__(self, config: dict, rank: int) -> None:
        self.model = config["model"]
        self.rank = rank
        self.headroom = config["headroom"]
        self.capture_sizes = config["capture_sizes"]
        # With drafts, a decode step works on this many tokens of each request.
        self.uniform_decode_query_len = decode_query_len(config["num_speculative_tokens"])
        self.attention = LinearAttentionBuilder(self.uniform_decode_query_len)
        self.weights: dict = {}
        self.graphs: dict[tuple[int, bool], int] = {}
        self.steps = 0

    def load_model(self) -> None:
        if self.rank == 0:
            logger.info(f"Starting to load model {self.model['name']}...")
        self.weights = load_model(self.model, self.rank)

    def capture_model(self) -> None:
        """Captures a graph for each batch size, mixed and decode, the largest first."""
        self._capture_graphs(self.capture_sizes, uniform_decode=False)
        self._capture_graphs(self.decode_capture_sizes(), uniform_decode=True)
        if self.rank == 0:
            logger.info(f"Captured {len(self.graphs)} graphs")

    def decode_capture_sizes(self) -> list[int]:
        """Numbers of tokens of the batches that hold nothing but decodes."""
        query_len = self.uniform_decode_query_len
        largest = self.capture_sizes[-1]
        return [size * query_len for size in self.capture_sizes if size * query_len <= largest]

    def _capture_graphs(self, sizes: list[int], uniform_decode: bool) -> None:
        kind = "decode, FULL" if uniform_decode else "mixed prefill-decode, PIECEWISE"
        with logger.Progress(f"Capturing graphs ({kind})", max(1, len(sizes)), self.rank == 0) as progress:
            for num_tokens in reversed(sizes):
                self._dummy_run(num_tokens, uniform_decode)
                progress.step()

    def _dummy_run(self, num_tokens: int, uniform_decode: bool) -> None:
        """Runs a batch of that shape once, so that it is recorded."""
        query_len = self.uniform_decode_query_len if uniform_decode else 1
        batch = AttentionMetadata(num_reqs=cdiv(num_tokens, query_len), num_tokens=num_tokens, query_len=query_len)
        if uniform_decode:
            self.attention.build_for_graph_capture(batch)
        self.graphs[num_tokens, uniform_decode] = _native.capture(num_tokens, query_len)

    def execute_model(self, prompt: str, max_tokens: int) -> str:
        self.steps += decode_steps(max_tokens, self.uniform_decode_query_len)
        return sample(prompt, max_tokens)

    def padded_size(self, num_tokens: int) -> int:
        """The captured size that a batch of this many tokens runs in."""
        fitting = [size for size in self.capture_sizes if size >= num_tokens]
        return fitting[0] if fitting else round_up(num_tokens, 8)
