"""Kinds of values in a request, and what is true of all of its mappings."""

from __future__ import annotations

from datetime import date
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from service.domain.recipe_rules import MOST_PATTERNS


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("nul_byte", "it holds a NUL byte, which no file or shell can take")
    return text


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _number_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _date_text(value: object) -> object:
    """Of a loader that makes a date of 2025-09-25 without quotes."""
    return value.isoformat() if isinstance(value, date) else value


NoNul = AfterValidator(_no_nul)
Text = Annotated[str, NoNul]
Ref = Annotated[str, StringConstraints(min_length=1, max_length=300, strip_whitespace=True), NoNul]
Line = Annotated[str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True), NoNul]
#: A number, or one with a unit.
Measure = Annotated[
    str,
    StringConstraints(min_length=1, max_length=40),
    BeforeValidator(_number_text, json_schema_input_type=str | float),
]
#: CPUs; a single one may be a number.
Cpus = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200, strip_whitespace=True),
    BeforeValidator(_number_text, json_schema_input_type=str | int),
]
Command = Annotated[str, StringConstraints(min_length=1), NoNul]
Goods = Annotated[
    list[Ref], Field(min_length=1, max_length=20), BeforeValidator(_listed, json_schema_input_type=Ref | list[Ref])
]
Patterns = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=500), NoNul]],
    Field(max_length=MOST_PATTERNS),
    BeforeValidator(_listed, json_schema_input_type=str | list[str]),
]
#: Short ones; a single one may stand alone.
Names = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True), NoNul]],
    Field(max_length=50),
    BeforeValidator(_listed, json_schema_input_type=str | list[str]),
]
AsOf = Annotated[
    str,
    StringConstraints(min_length=1, max_length=40, strip_whitespace=True),
    BeforeValidator(_date_text, json_schema_input_type=str),
]
EnvName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Strict(BaseModel):
    """Refuses unknown keys by name; a mistyped key that is quietly ignored costs a night of probes."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    #: Keys that are known, but elsewhere, and why.
    elsewhere: ClassVar[dict[str, str]] = {}

    @classmethod
    def written(cls) -> list[str]:
        """As they are written."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        for key in data:
            if key in cls.elsewhere:
                context = {"key": str(key), "advice": cls.elsewhere[key]}
                raise PydanticCustomError("key_elsewhere", "{key} {advice}", context)
            if key not in cls.written():
                raise PydanticCustomError("unknown_key", "{key}", {"key": str(key), "known": cls.written()})
        return data


def nearest(key: str, known: list[str]) -> str | None:
    """The known key that was probably meant."""
    return next(iter(get_close_matches(key.lower().replace("-", "_"), known, n=1)), None)
