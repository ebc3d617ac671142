"""Bisections, probes, builds, events, the outbox and nodes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_UNDELIVERED = sa.text("delivered_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "bisections",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("submitter", sa.Text(), nullable=False),
        _time("created_at", nullable=False),
        _time("updated_at", nullable=False),
        sa.Column("good_shas", sa.JSON(), nullable=False),
        sa.Column("bad_sha", sa.Text()),
        sa.Column("candidates", sa.Integer()),
        sa.Column("candidates_left", sa.Integer()),
        sa.Column("expected_probes", sa.Double()),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("problem", sa.JSON()),
        sa.Column("answer", sa.JSON()),
        _time("ended_at"),
        sa.PrimaryKeyConstraint("id", name="pk_bisections"),
    )
    op.create_index("ix_bisections_state_created_at", "bisections", ["state", "created_at"])
    op.create_index("ix_bisections_created_at", "bisections", ["created_at"])
    op.create_table(
        "probes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("bisection_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        _time("planned_at", nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("build_key", sa.Text()),
        sa.Column("node", sa.Text()),
        _time("queued_at"),
        _time("started_at"),
        _time("finished_at"),
        _time("silent_since"),
        sa.Column("outcome", sa.JSON()),
        sa.Column("faults", sa.JSON(), nullable=False),
        sa.Column("verdict", sa.Text()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_probes"),
        sa.ForeignKeyConstraint(["bisection_id"], ["bisections.id"], name="fk_probes_bisection_id_bisections"),
        sa.UniqueConstraint("bisection_id", "number", name="uq_probes_bisection_id_number"),
    )
    op.create_index("ix_probes_state", "probes", ["state"])
    op.create_index("ix_probes_build_key", "probes", ["build_key"])
    op.create_table(
        "builds",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("repo", sa.Text(), nullable=False),
        sa.Column("sha", sa.Text(), nullable=False),
        sa.Column("bisection_id", sa.Text(), nullable=False),
        _time("queued_at", nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("node", sa.Text()),
        _time("started_at"),
        _time("finished_at"),
        _time("silent_since"),
        sa.Column("seconds", sa.Double()),
        sa.Column("wheel_name", sa.Text()),
        sa.Column("wheel_path", sa.Text()),
        sa.Column("wheel_sha256", sa.Text()),
        sa.Column("wheel_bytes", sa.BigInteger()),
        sa.Column("log", sa.JSON()),
        sa.Column("failure", sa.JSON()),
        sa.Column("faults", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_builds"),
        sa.ForeignKeyConstraint(["bisection_id"], ["bisections.id"], name="fk_builds_bisection_id_bisections"),
    )
    op.create_index("ix_builds_state", "builds", ["state"])
    op.create_table(
        "events",
        _counter(),
        sa.Column("bisection_id", sa.Text(), nullable=False),
        _time("at", nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.ForeignKeyConstraint(["bisection_id"], ["bisections.id"], name="fk_events_bisection_id_bisections"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_bisection_id_id", "events", ["bisection_id", "id"])
    op.create_table(
        "outbox",
        _counter(),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        _time("posted_at", nullable=False),
        _time("delivered_at"),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("key", name="uq_outbox_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_undelivered", "outbox", ["id"], sqlite_where=_UNDELIVERED, postgresql_where=_UNDELIVERED)
    op.create_table(
        "nodes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        _time("seen_at", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_nodes"),
    )


def downgrade() -> None:
    for table in ("nodes", "outbox", "events", "builds", "probes", "bisections"):
        op.drop_table(table)


def _time(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _counter() -> sa.Column[object]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=True)
