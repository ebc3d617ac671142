"""Where a probe shall be tried, what its dependencies are as of, the GPUs of nodes, and nodes that were taken out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("probes") as table:
        table.add_column(sa.Column("target", sa.Text()))
        table.add_column(sa.Column("own_day", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("nodes") as table:
        table.add_column(sa.Column("gpus", sa.JSON(), nullable=False, server_default="[]"))
        table.add_column(sa.Column("out", sa.Text(), nullable=False, server_default=""))
    # The defaults were for the rows that were there.
    for name, column in (("probes", "own_day"), ("nodes", "gpus"), ("nodes", "out")):
        with op.batch_alter_table(name) as table:
            table.alter_column(column, server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("nodes") as table:
        table.drop_column("out")
        table.drop_column("gpus")
    with op.batch_alter_table("probes") as table:
        table.drop_column("own_day")
        table.drop_column("target")
