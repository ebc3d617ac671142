"""What a model looks like, by its name."""

from tinyserve.model_executor.registry import ARCHITECTURES


def model_config(name: str) -> dict:
    """The architecture whose key stands in the name; else the first one."""
    for key, architecture in ARCHITECTURES.items():
        if key in name.lower():
            return {"name": name, **architecture}
    return {"name": name, **next(iter(ARCHITECTURES.values()))}
