"""Changes by hand to the files of the traceback that leave what they do as it is."""

from typing import NamedTuple

from examples.slots import LINEAR_ATTENTION, MODEL_RUNNER


class Edit(NamedTuple):
    path: str
    subject: str
    old: str
    new: str


EDITS = (
    Edit(
        MODEL_RUNNER,
        "[Doc] Say what a model runner is for",
        '"""Runs the model of one rank: loads it, captures its graphs, makes tokens."""',
        '"""Runs the shard of one rank: loads it, captures its graphs, makes tokens."""',
    ),
    Edit(
        MODEL_RUNNER,
        "[Misc] Type the weights (dict[str, list])",
        "self.weights: dict = {}",
        "self.weights: dict[str, list] = {}",
    ),
    Edit(
        MODEL_RUNNER,
        "[Doc] Say what a runner's steps are",
        "        self.steps = 0\n",
        "        # Decode steps so far, for the metrics of the front end.\n        self.steps = 0\n",
    ),
    Edit(
        MODEL_RUNNER,
        "[Core] Log how many layers are loaded",
        "Starting to load model {self.model['name']}...",
        "Starting to load model {self.model['name']} with {self.model['layers']} layers...",
    ),
    Edit(
        MODEL_RUNNER,
        "[Core] Do not rely on the order of batch sizes",
        "for num_tokens in reversed(sizes):",
        "for num_tokens in sorted(sizes, reverse=True):",
    ),
    Edit(
        MODEL_RUNNER,
        "[Doc] Explain dummy runs",
        '"""Runs a batch of that shape once, so that it is recorded."""',
        '"""Runs a batch of that shape once, with made-up tokens, so that its graph is recorded."""',
    ),
    Edit(
        MODEL_RUNNER,
        "[Core] Name the key of a captured graph",
        "self.graphs[num_tokens, uniform_decode] = _native.capture(num_tokens, query_len)",
        "key = (num_tokens, uniform_decode)\n        self.graphs[key] = _native.capture(num_tokens, query_len)",
    ),
    Edit(
        MODEL_RUNNER,
        "[Doc] Padding: say that batches run in the next larger graph",
        '"""The captured size that a batch of this many tokens runs in."""',
        '"""The next larger captured size, in which a batch of this many tokens runs padded."""',
    ),
    Edit(
        MODEL_RUNNER,
        "[Core] Pad with min() | no lists on the hot path",
        "return fitting[0] if fitting else round_up(num_tokens, 8)",
        "return min(fitting, default=round_up(num_tokens, 8))",
    ),
    Edit(
        MODEL_RUNNER,
        '[Doc] What "uniform" means in uniform_decode_query_len',
        "# With drafts, a decode step works on this many tokens of each request.",
        "# Uniform: every request brings the same number of tokens to a decode step, its drafts included.",
    ),
    Edit(
        MODEL_RUNNER,
        "[Core] Ask for the driver by name, not by rank 0",
        "        self.rank = rank\n",
        "        self.rank = rank\n        self.is_driver = rank == 0\n",
    ),
    Edit(
        MODEL_RUNNER,
        "[Frontend] Refuse an empty completion early",
        "        return sample(prompt, max_tokens)",
        "        assert max_tokens > 0\n        return sample(prompt, max_tokens)",
    ),
    Edit(
        MODEL_RUNNER,
        "[Doc] Document load_model",
        "    def load_model(self) -> None:\n",
        '    def load_model(self) -> None:\n        """Each rank reads its own shard; rank 0 speaks for all."""\n',
    ),
    Edit(
        LINEAR_ATTENTION,
        "[Attention] Say what STATE_BYTES counts",
        "STATE_BYTES = 65536",
        "#: The recurrent state of one request in one layer.\nSTATE_BYTES = 64 * 1024",
    ),
    Edit(
        LINEAR_ATTENTION,
        "[Doc] Linear attention: what a builder builds",
        '"""Prepares what the kernels read."""',
        '"""Prepares the metadata that the kernels of a step read."""',
    ),
    Edit(
        LINEAR_ATTENTION,
        "[Attention] Say that starts include the end",
        '"""Where the queries of each request begin."""',
        '"""Where the queries of each request begin, and where the last one ends."""',
    ),
    Edit(
        LINEAR_ATTENTION,
        "[Bugfix] Reserve a state even for an empty batch",
        "return num_reqs * STATE_BYTES",
        "return max(1, num_reqs) * STATE_BYTES",
    ),
    Edit(
        LINEAR_ATTENTION,
        "[Doc] Linear attention keeps no cache of keys and values",
        '"""Linear attention: a recurrent state for each request instead of a cache of keys and values."""',
        '"""Linear attention: one recurrent state a request, and no cache of keys and values that grows."""',
    ),
)
