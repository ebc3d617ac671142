"""Run by Alembic: by service.adapters.database.migrate, which hands its connection in, or by `alembic -x url=…`."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from service.adapters.database.engine import create_engine
from service.adapters.database.tables import Base


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


def by_hand() -> None:
    url = context.get_x_argument(as_dictionary=True).get("url")
    if url is None:
        raise SystemExit("name the database: alembic -x url=sqlite:////path/to/file …")
    with create_engine(url, foreign_keys=False).begin() as connection:
        migrate(connection)


if (given := context.config.attributes.get("connection")) is not None:
    migrate(given)
else:
    by_hand()
