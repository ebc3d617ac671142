"""Whether the database can be used: reached, and at the version that this code works with."""

from __future__ import annotations

from functools import lru_cache

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout


def trouble(engine: Engine) -> str | None:
    # A tenth of a second of imports that only those who are asked for it need.
    from service.adapters.database import migrate

    try:
        with engine.connect() as connection:
            version = migrate.version_of(connection)
    except (DBAPIError, PoolTimeout) as error:
        return f"the database does not answer: {getattr(error, 'orig', error)}"
    return _said(version)


@lru_cache(maxsize=16)
def _said(version: str | None) -> str | None:
    """The folder of migrations is read once for each."""
    from service.adapters.database import migrate

    try:
        migrate.check_version(version)
    except migrate.WrongSchema as error:
        return str(error)
    return None
