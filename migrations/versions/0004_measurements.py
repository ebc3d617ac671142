"""A run's numbers are measurements, each with its name, its unit and what is wrong with it, and no bare samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

#: Where outcomes lie, by table, with its key: by themselves, and in faults.
PLACES = (("probes", "id", ("outcome", "faults")), ("builds", "key", ("failure", "faults")))
Outcome = dict[str, Any]


def upgrade() -> None:
    _rewrite(_measured)


def downgrade() -> None:
    """Of several metrics the one that decides is kept."""
    _rewrite(_sampled)


def _measured(outcome: Outcome) -> None:
    """A number had no unit; what was wrong with one that is missing stood in the environment."""
    if "samples" not in outcome:
        return
    values = outcome.pop("samples")
    problem = "" if values else (outcome.get("environment") or {}).pop("metric", "")
    found = values[-1] if values else None
    known = {"name": "metric", "value": found, "unit": "", "found": len(values), "problem": problem}
    outcome["measurements"] = [known] if values or problem else []


def _sampled(outcome: Outcome) -> None:
    if "measurements" not in outcome:
        return
    first = next(iter(outcome.pop("measurements")), {"value": None, "problem": ""})
    outcome["samples"] = [first["value"]] if first["value"] is not None else []
    if first["problem"]:
        outcome["environment"] = {**(outcome.get("environment") or {}), "metric": first["problem"]}


def _rewrite(change: Callable[[Outcome], None]) -> None:
    """Row by row: an outcome may be large, and a table long."""
    connection = op.get_bind()
    for name, key, columns in PLACES:
        table = sa.table(name, sa.column(key), *(sa.column(column, sa.JSON(none_as_null=True)) for column in columns))
        keys = connection.scalars(sa.select(table.c[key])).all()
        for row in keys:
            values = connection.execute(
                sa.select(*(table.c[column] for column in columns)).where(table.c[key] == row)
            ).one()
            found = dict(zip(columns, values, strict=True))
            for outcome in _outcomes(found):
                change(outcome)
            connection.execute(sa.update(table).where(table.c[key] == row).values(found))


def _outcomes(found: dict[str, Any]) -> list[Outcome]:
    """All of a row, those of controls too."""
    faults = found.pop("faults")
    kept = [*found.values(), *(fault.get("outcome") for fault in faults or ())]
    found["faults"] = faults
    outcomes = [outcome for outcome in kept if outcome is not None]
    return [*outcomes, *(outcome["control"] for outcome in outcomes if outcome.get("control") is not None)]
