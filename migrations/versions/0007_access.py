"""Tokens, sessions, webhooks, what people say of commits, budgets as they are now, and what lists are filtered by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
#: Name, type, and what rows that are there get where it may not be null.
ADDED: tuple[tuple[str, sa.types.TypeEngine, str | None], ...] = (
    ("budget", sa.JSON(), "{}"),
    ("overrides", sa.JSON(), "[]"),
    ("clone_of", sa.Text(), None),
    ("project", sa.Text(), ""),
    ("words", sa.Text(), ""),
)
OLD_INDEX = ("ix_bisections_created_at", ["created_at"])
INDEXES = (
    ("ix_bisections_created_at_id", ["created_at", "id"]),
    ("ix_bisections_project_created_at", ["project", "created_at"]),
)
ENDED = ("ix_bisections_ended", "bisections", ["ended_at", "id"])
BUILDS_BY_TIME = ("ix_builds_queued_at_key", "builds", ["queued_at", "key"])
#: Rows of old bisections that are read at a time.
AT_A_TIME = 500


def upgrade() -> None:
    op.drop_index(OLD_INDEX[0], "bisections")
    # SQLite writes an added column on the line of the last one, unlike a table that is made anew.
    recreate = "always" if op.get_bind().dialect.name == "sqlite" else "auto"
    with op.batch_alter_table("bisections", recreate=recreate) as table:
        for column, kind, default in ADDED:
            table.add_column(sa.Column(column, kind, nullable=default is None, server_default=default))
    # The defaults were for the rows that were there.
    with op.batch_alter_table("bisections") as table:
        for column, _, default in ADDED:
            if default is not None:
                table.alter_column(column, server_default=None)
    _fill()
    for name, columns in INDEXES:
        op.create_index(name, "bisections", columns)
    ended = sa.text("ended_at IS NOT NULL")
    op.create_index(*ENDED, sqlite_where=ended, postgresql_where=ended)
    op.create_index(*BUILDS_BY_TIME)
    _tables()


def _fill() -> None:
    """What the rows that are there would have had."""
    connection = op.get_bind()
    rows = sa.table(
        "bisections",
        *(sa.column(name, sa.Text()) for name in ("id", "project", "words")),
        *(sa.column(name, sa.JSON()) for name in ("request", "budget")),
    )
    last = ""
    while found := connection.execute(
        sa.select(rows.c.id, rows.c.request).where(rows.c.id > last).order_by(rows.c.id).limit(AT_A_TIME)
    ).all():
        for id, request in found:
            values = {
                "project": request["recipe"]["name"],
                "words": _words(request),
                "budget": request.get("budget", {}),
            }
            connection.execute(rows.update().where(rows.c.id == id).values(values))
        last = found[-1].id


def _words(request: dict) -> str:
    shown = (request["recipe"]["name"], request["repo"].rpartition("@")[2], *request["good"], request["bad"])
    return "\n".join(shown).lower()


def _tables() -> None:
    op.create_table(
        "tokens",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "name", "prefix", "hash", "scope")),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        *(sa.Column(name, _TIME, nullable=True) for name in ("expires_at", "revoked_at", "used_at")),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )
    op.create_table(
        "sessions",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("hash", "name", "scope")),
        *(sa.Column(name, _TIME, nullable=False) for name in ("created_at", "expires_at")),
        sa.PrimaryKeyConstraint("hash", name="pk_sessions"),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_table(
        "webhooks",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "url", "secret")),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("project", "submitter")),
        sa.Column("off", sa.Text(), nullable=False),
        sa.Column("failing_since", _TIME, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=False),
        *(sa.Column(name, _TIME, nullable=True) for name in ("tried_at", "delivered_at")),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )


def downgrade() -> None:
    for table in ("webhooks", "sessions", "tokens"):
        op.drop_table(table)
    for name, of, _ in (BUILDS_BY_TIME, ENDED):
        op.drop_index(name, of)
    for name, _ in INDEXES:
        op.drop_index(name, "bisections")
    with op.batch_alter_table("bisections") as table:
        for column, _, _ in reversed(ADDED):
            table.drop_column(column)
    op.create_index(OLD_INDEX[0], "bisections", OLD_INDEX[1])
