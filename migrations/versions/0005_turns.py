"""Whose turn it is (queues, what was sent when), priorities, pauses, what GPUs were held for, labels of nodes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
#: By table: name, type, and what rows that are there get where it may not be null.
ADDED: dict[str, tuple[tuple[str, sa.types.TypeEngine, str | None], ...]] = {
    "bisections": (("priority", sa.Text(), "normal"), ("paused_at", _TIME, None), ("paused_s", sa.Double(), "0")),
    "probes": (
        ("queue", sa.Text(), "cpu"),
        ("due_at", _TIME, None),
        ("sent_at", _TIME, None),
        ("gpu_leased_s", sa.Double(), "0"),
        ("gpu_used_s", sa.Double(), "0"),
        ("log_removed_at", _TIME, None),
    ),
    "builds": (("due_at", _TIME, None), ("sent_at", _TIME, None), ("log_removed_at", _TIME, None)),
    "nodes": (("labels", sa.JSON(), "[]"), ("models", sa.JSON(), "[]")),
}
WAITING = (("probes", "queue"), ("builds", "bisection_id"))


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
    # What was queued had been sent.
    for name in ("probes", "builds"):
        op.execute(f"UPDATE {name} SET sent_at = queued_at WHERE state IN ('queued', 'running')")
    where = sa.text("state = 'queued' AND sent_at IS NULL")
    for name, column in WAITING:
        op.create_index(f"ix_{name}_waiting", name, [column], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    """What waits for its turn is sent by the sweep, which finds it missing in the queue."""
    for name, _ in WAITING:
        op.drop_index(f"ix_{name}_waiting", name)
    for name, columns in ADDED.items():
        with op.batch_alter_table(name) as table:
            for column, _, _ in reversed(columns):
                table.drop_column(column)
