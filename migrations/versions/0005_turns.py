"""Whose turn it is (queues, what was sent when), priorities, pauses, what GPUs were held for, labels of nodes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
Default = str | sa.ColumnElement[bool] | None
_TURN: tuple[tuple[str, sa.types.TypeEngine, Default], ...] = (
    ("turn", sa.Text(), ""),
    ("asked_at", _TIME, None),
    # SQLite would keep the text of "false", which is read as true.
    ("held", sa.Boolean(), sa.false()),
)
#: By table: name, type, and what rows that are there get where it may not be null.
ADDED: dict[str, tuple[tuple[str, sa.types.TypeEngine, Default], ...]] = {
    "bisections": (("priority", sa.Text(), "normal"), ("paused_at", _TIME, None), ("paused_s", sa.Double(), "0")),
    "probes": (
        ("queue", sa.Text(), "cpu"),
        *_TURN,
        ("due_at", _TIME, None),
        ("sent_at", _TIME, None),
        ("leased_at", _TIME, None),
        ("gpu_leased_s", sa.Double(), "0"),
        ("gpu_used_s", sa.Double(), "0"),
        ("log_removed_at", _TIME, None),
    ),
    "builds": (*_TURN, ("due_at", _TIME, None), ("sent_at", _TIME, None), ("log_removed_at", _TIME, None)),
    "nodes": (("labels", sa.JSON(), "[]"), ("models", sa.JSON(), "[]")),
}
_WAITING = sa.text("state = 'queued' AND sent_at IS NULL AND NOT held")
_OUT = sa.text("state IN ('queued', 'running') AND sent_at IS NOT NULL")
INDEXES = (
    ("ix_probes_waiting", "probes", ["queue", "turn", "asked_at", "number"], _WAITING),
    ("ix_probes_out", "probes", ["queue", "turn"], _OUT),
    ("ix_builds_waiting", "builds", ["turn", "asked_at", "queued_at"], _WAITING),
    ("ix_builds_out", "builds", ["turn"], _OUT),
)
#: Of the rows that are there, as a bisection of normal priority gives it.
_OF_BISECTION = (
    "UPDATE {table} SET turn = '1 ' || (SELECT submitter FROM bisections WHERE id = bisection_id),"
    " asked_at = (SELECT created_at FROM bisections WHERE id = bisection_id)"
)


def upgrade() -> None:
    # SQLite writes an added column on the line of the last one, unlike a table that is made anew.
    recreate = "always" if op.get_bind().dialect.name == "sqlite" else "auto"
    for name, columns in ADDED.items():
        with op.batch_alter_table(name, recreate=recreate) as table:
            for column, kind, default in columns:
                table.add_column(sa.Column(column, kind, nullable=default is None, server_default=default))
        # The defaults were for the rows that were there.
        with op.batch_alter_table(name) as table:
            for column, _, default in columns:
                if default is not None:
                    table.alter_column(column, server_default=None)
    _queue()
    for table in ("probes", "builds"):
        op.execute(_OF_BISECTION.format(table=table))
        # What was queued had been sent.
        op.execute(f"UPDATE {table} SET sent_at = queued_at WHERE state IN ('queued', 'running')")
    for name, table, columns, where in INDEXES:
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def _queue() -> None:
    """Where the probes that are there would wait."""
    probes = sa.table("probes", *(sa.column(name, sa.Text()) for name in ("bisection_id", "queue", "target")))
    bisections = sa.table("bisections", sa.column("id", sa.Text()), sa.column("setup", sa.JSON()))
    gpu_class = bisections.c.setup["gpu_class"].as_string()
    with_gpus = sa.select(bisections.c.id).where(gpu_class.is_not(None))
    of_it = sa.select(gpu_class).where(bisections.c.id == probes.c.bisection_id).scalar_subquery()
    op.execute(
        probes.update().where(probes.c.bisection_id.in_(with_gpus)).values(queue=sa.literal("gpu.", sa.Text()) + of_it)
    )
    op.execute(
        probes.update()
        .where(probes.c.target.is_not(None))
        .values(queue=sa.literal("node.", sa.Text()) + probes.c.target)
    )


def downgrade() -> None:
    """What waits for its turn is sent by the sweep, which finds it missing in the queue."""
    for name, table, _, _ in INDEXES:
        op.drop_index(name, table)
    for name, columns in ADDED.items():
        with op.batch_alter_table(name) as table:
            for column, _, _ in reversed(columns):
                table.drop_column(column)
