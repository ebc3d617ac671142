"""The places of the template that hold a behaviour, and the text for each value of each.

A slot's text in the template is that of its default value. The values of these slots
alone tell what a commit does.
"""

from collections.abc import Callable
from typing import NamedTuple


class Slot(NamedTuple):
    key: str
    path: str
    default: str
    #: The text for a value, ready to replace the default's.
    text: Callable[[str], str]


MODEL_RUNNER = "tinyserve/v1/worker/model_runner.py"
LINEAR_ATTENTION = "tinyserve/v1/attention/backends/linear_attn.py"
#: The two innermost files of the failure's traceback.
TRACE_FILES = (MODEL_RUNNER, LINEAR_ATTENTION)

MACROS = ("TS_ALIGNMENT", "TS_LINE_BYTES", "TS_CACHE_LINE", "TS_POOL_ALIGNMENT")
ROPE_KEYS = ("rope_dim", "rotary_dim", "rotary_size", "rope_width")


def name_of(names: tuple[str, ...], value: str) -> str:
    """A new name for each number, in cycles that never repeat the one before."""
    index = int(value)
    return names[index % len(names)] + (f"_{index // len(names) + 1}" if index >= len(names) else "")


def pool_bytes(value: str) -> str:
    name = name_of(MACROS, value)
    return f"return (bytes + {name} - 1) / {name} * {name};"


def architectures(value: str) -> str:
    key = name_of(ROPE_KEYS, value)
    rows = (("next", 48, 2048, 8, 64), ("llama", 32, 4096, 4, 128), ("mix", 32, 4096, 6, 128))
    return "\n".join(
        f'    "{name}": {{"layers": {layers}, "hidden": {hidden}, "shards": {shards}, "{key}": {width}}},'
        for name, layers, hidden, shards, width in rows
    )


def dependencies(value: str) -> str:
    return f'dependencies = ["tinyserve-kernels>={value}.0"]' if value else "dependencies = []"


def arrivals(value: str) -> str:
    return "driver = 1\n    return world_size + driver" if value == "driver" else "return world_size"


EACH_IS_A_QUERY = '''\
        """Numbers of tokens of the batches that hold nothing but decodes."""
        query_len = self.uniform_decode_query_len
        largest = self.capture_sizes[-1]
{when_tight}\
        return [size * query_len for size in self.capture_sizes if size * query_len <= largest]
'''
TIGHT = """\
        if self.headroom < {rate}:
            # No memory for a second pool: use that of the mixed batches.
            return [size for size in self.capture_sizes if size >= query_len]
"""
SHARED = '''\
        """The sizes that hold a decode, the same as for mixed batches, so that both use one pool of memory."""
        return [size for size in self.capture_sizes if size >= self.uniform_decode_query_len]
'''
ROUNDED = '''\
        """The sizes rounded up to whole queries."""
        sizes = {round_up(size, self.uniform_decode_query_len) for size in self.capture_sizes}
        return sorted(size for size in sizes if size <= self.capture_sizes[-1])
'''


def decode_sizes(value: str) -> str:
    """`each`, `shared` and `rounded` are as they are called; a number is the rate at which `each` turns to `shared`."""
    texts = {"each": EACH_IS_A_QUERY.format(when_tight=""), "shared": SHARED, "rounded": ROUNDED}
    return texts.get(value) or EACH_IS_A_QUERY.format(when_tight=TIGHT.format(rate=value))


def captured(value: str) -> str:
    graphs = ", {len(self.model_runner.graphs)} graphs" if value else ""
    return f'logger.info(f"Graph capturing finished in {{seconds:.2f}} secs{graphs}")'


SLOTS = (
    Slot("version", "pyproject.toml", "0.1.0", lambda value: f'version = "{value}"'),
    Slot("dependencies", "pyproject.toml", "", dependencies),
    Slot("native_version", "csrc/version.h", "1", lambda value: f"#define TS_NATIVE_VERSION {value}"),
    Slot("native_version", "tinyserve/native_version.py", "1", lambda value: f"NATIVE_VERSION = {value}\n"),
    Slot("macro", "csrc/tinyserve.h", "0", lambda value: f"#define {name_of(MACROS, value)} 64"),
    Slot("macro", "csrc/graphs.c", "0", pool_bytes),
    Slot("rope_key", "tinyserve/model_executor/registry.py", "0", architectures),
    Slot("rope_key", "tinyserve/model_executor/loader.py", "0", lambda value: f'model["{name_of(ROPE_KEYS, value)}"]'),
    Slot("arrivals", "tinyserve/distributed/barrier.py", "", arrivals),
    Slot("decode_sizes", MODEL_RUNNER, "each", decode_sizes),
    Slot("captured", "tinyserve/v1/worker/worker.py", "", captured),
    Slot("copy_us", "tinyserve/v1/sampler.py", "100", lambda value: f"COPY_US = {value}"),
    Slot(
        "rounding", "tinyserve/model_executor/quantization.py", "round", lambda value: f"return {value}(value * LEVELS)"
    ),
)
