"""What the service counts of itself, and what its control workers say of themselves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
ENDED = ("probes", "builds")


def upgrade() -> None:
    for table in ENDED:
        op.create_index(f"ix_{table}_finished_at", table, ["finished_at"])
    op.create_table(
        "tallies",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("bound", sa.Double(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "label", "bound", name="pk_tallies"),
    )
    op.create_table(
        "counted",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("until", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counted"),
    )
    op.create_table(
        "beats",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("began_at", _TIME, nullable=False),
        sa.Column("moved_at", _TIME, nullable=False),
        sa.Column("sweep_s", sa.Double(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("busy", sa.Integer(), nullable=False),
        sa.Column("preparing", sa.Integer(), nullable=False),
        sa.Column("oldest_at", _TIME, nullable=True),
        sa.Column("swept_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_beats"),
    )


def downgrade() -> None:
    for table in ("beats", "counted", "tallies"):
        op.drop_table(table)
    for table in ENDED:
        op.drop_index(f"ix_{table}_finished_at", table)
