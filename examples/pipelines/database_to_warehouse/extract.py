"""Sends the rows of a database that changed in a window of time to a topic, as a batch.

    python -m examples.pipelines.database_to_warehouse.extract shop.db \\
        --since 2026-03-02 --until 2026-03-03
    python -m examples.pipelines.database_to_warehouse.extract postgresql://me@host/shop \\
        --since 2026-03-02 --until 2026-03-03

Run it every night for the previous day. Rows are read by ranges of their key, so memory holds one
range only. A window may be read again, since the warehouse keeps the newest row of each key. Rows
are never removed: the shop sets their status to deleted.
"""

import argparse
import datetime as dt
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

from examples.pipelines.feeding import Record, feed

TOPIC = "orders"
TOPICS = (TOPIC,)
COLUMNS = ("id", "customer", "amount", "status", "ordered_on", "updated_at")
RANGE = 1_000
"""The number of rows per read."""


def changed_rows(database: str, since: dt.datetime, until: dt.datetime) -> Iterator[Record]:
    """Yield changed rows of a SQLite file or a PostgreSQL URL from `since` to before `until`."""
    is_postgres = database.startswith(("postgres://", "postgresql://"))
    connection = _postgres(database) if is_postgres else sqlite3.connect(database)
    mark = "%s" if is_postgres else "?"
    window = f"updated_at >= {mark} AND updated_at < {mark}"
    bounds = _bounds(since, until, is_postgres=is_postgres)
    with closing(connection):
        rows = _rows(connection, window, bounds)
        while rows:
            for row in rows:
                value = dict(zip(COLUMNS, row, strict=True))
                yield Record(TOPIC, str(value["id"]), json.dumps(value, default=_plain))
            rows = _rows(connection, f"{window} AND id > {mark}", (*bounds, rows[-1][0]))


def _postgres(url: str) -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise SystemExit(
            f"PostgreSQL is read through psycopg ({error}); run: pip install 'psycopg[binary]'"
        ) from error

    try:
        return psycopg.connect(url)
    except psycopg.ProgrammingError:
        # The error's message would contain the address with its password.
        raise ValueError("that is no address: write postgresql://user@host:5432/name") from None


def _rows(connection: Any, condition: str, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the rows with the lowest keys that meet a condition."""
    columns = ", ".join(COLUMNS)
    query = f"SELECT {columns} FROM orders WHERE {condition} ORDER BY id LIMIT {RANGE}"
    with closing(connection.cursor()) as cursor:
        cursor.execute(query, arguments)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def _bounds(since: dt.datetime, until: dt.datetime, *, is_postgres: bool) -> tuple[Any, Any]:
    """Return the window for a query; SQLite has times as ISO texts in UTC, which sort alike."""
    return (since, until) if is_postgres else (since.isoformat(), until.isoformat())


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    assert isinstance(value, dt.date), "the table has texts, numbers and times"
    return value.isoformat()


def day(text: str) -> dt.datetime:
    """Return midnight in UTC."""
    return dt.datetime.combine(dt.date.fromisoformat(text), dt.time(), dt.UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description="Send what changed in a database to a topic.")
    parser.add_argument("database", help="a SQLite file or a postgresql:// URL")
    parser.add_argument("--since", type=day, required=True, metavar="DAY")
    parser.add_argument("--until", type=day, required=True, metavar="DAY")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", metavar="HOST:PORT")
    given = parser.parse_args()
    rows = changed_rows(given.database, given.since, given.until)
    print(f"{feed(given.bootstrap, rows, TOPICS)} changed rows sent to {TOPIC}")


if __name__ == "__main__":
    main()
