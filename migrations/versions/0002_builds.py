"""Builds by content and native key, what a bisection's builds share, the roles of nodes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BUILD_COLUMNS = ("native_key", "base_key", "origin", "notes", "ahead", "used_at")


def upgrade() -> None:
    """Wheels of before have no native key, and so serve no other commit."""
    with op.batch_alter_table("bisections") as table:
        table.add_column(sa.Column("setup", sa.JSON(), nullable=False, server_default="{}"))
    with op.batch_alter_table("builds") as table:
        table.add_column(sa.Column("native_key", sa.Text()))
        table.add_column(sa.Column("base_key", sa.Text()))
        table.add_column(sa.Column("origin", sa.Text()))
        table.add_column(sa.Column("notes", sa.JSON(), nullable=False, server_default="[]"))
        table.add_column(sa.Column("ahead", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("used_at", sa.DateTime(timezone=True)))
    with op.batch_alter_table("nodes") as table:
        table.add_column(sa.Column("roles", sa.JSON(), nullable=False, server_default='["build", "run"]'))
    # The defaults were for the rows that were there.
    for name, column in (("bisections", "setup"), ("builds", "notes"), ("builds", "ahead"), ("nodes", "roles")):
        with op.batch_alter_table(name) as table:
            table.alter_column(column, server_default=None)
    op.create_index("ix_builds_native_key", "builds", ["native_key"])
    op.create_index("ix_builds_repo", "builds", ["repo"])


def downgrade() -> None:
    for index in ("ix_builds_native_key", "ix_builds_repo"):
        op.drop_index(index, "builds")
    with op.batch_alter_table("nodes") as table:
        table.drop_column("roles")
    with op.batch_alter_table("builds") as table:
        for column in _BUILD_COLUMNS:
            table.drop_column(column)
    with op.batch_alter_table("bisections") as table:
        table.drop_column("setup")
