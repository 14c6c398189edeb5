"""A shop's database with three days of orders, and the windows of these days in the topic.

python -m examples.pipelines.database_to_warehouse.generate
"""

import datetime as dt
import itertools
import random
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from examples.pipelines.database_to_warehouse.extract import TOPICS, changed_rows
from examples.pipelines.feeding import Record, main

CREATE = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount NUMERIC(12,2),"
    " status TEXT, ordered_on DATE, updated_at {time})"
)
DAYS = tuple(
    dt.datetime(2026, 3, 2, tzinfo=dt.UTC) + dt.timedelta(days=number) for number in range(4)
)
"""The midnights that bound the days of orders."""
ORDERS_A_DAY = 200


def records() -> Iterator[Record]:
    """Write three days into a SQLite file."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "shop.db")
        with closing(sqlite3.connect(path)) as database:
            database.execute(CREATE.format(time="TEXT"))
            yield from windows(path, database)


def windows(name: str, database: Any, mark: str = "?", seed: int = 3) -> Iterator[Record]:
    """Yield the changes of each day, at its end; the second day's window is read twice."""
    chance = random.Random(seed)
    for number, (since, until) in enumerate(itertools.pairwise(DAYS)):
        for statement, row in changes(chance, number, since):
            database.execute(statement.replace("?", mark), row)
        database.commit()
        for _ in range(2 if number == 1 else 1):
            yield from changed_rows(name, since, until)


def changes(
    chance: random.Random, day: int, midnight: dt.datetime
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Insert the new orders of a day, and update older ones."""
    for number in range(day * ORDERS_A_DAY):
        fate = chance.random()
        if fate < 0.05:
            status = "deleted" if fate < 0.01 else "cancelled" if fate < 0.03 else "shipped"
            moment = midnight + dt.timedelta(minutes=chance.randrange(24 * 60))
            yield (
                "UPDATE orders SET status = ?, updated_at = ? WHERE id = ?",
                (status, moment.isoformat(), number),
            )
    for number in range(day * ORDERS_A_DAY, (day + 1) * ORDERS_A_DAY):
        moment = midnight + dt.timedelta(minutes=chance.randrange(24 * 60))
        yield (
            "INSERT INTO orders VALUES (?, ?, ?, 'placed', ?, ?)",
            (
                number,
                f"customer {chance.randrange(50)}",
                chance.randrange(500, 20_000) / 100,
                moment.date().isoformat(),
                moment.isoformat(),
            ),
        )


if __name__ == "__main__":
    main(TOPICS, records)
