"""The way from a database into a topic, in windows of time: SQLite and PostgreSQL alike."""

import json
import random
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples.pipelines.database_to_warehouse import extract, generate
from tests.processes import postgres

DAYS = generate.DAYS
Database = tuple[str, Any, str]
"""Its name for the program, a connection to fill it, and the mark of a parameter."""


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    bin_folder = postgres.programs()
    if bin_folder is None:
        pytest.skip("there is no PostgreSQL here; Debian has it in the package postgresql")
    with postgres.running(bin_folder) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with an empty table of orders."""
    if request.param == "sqlite":
        path = str(tmp_path / "shop.db")
        with closing(sqlite3.connect(path)) as lite:
            lite.execute(generate.CREATE.format(time="TEXT"))
            yield path, lite, "?"
        return
    import psycopg

    url = request.getfixturevalue("postgres_url")
    with closing(psycopg.connect(url)) as server:
        server.execute("DROP TABLE IF EXISTS orders")
        server.execute(generate.CREATE.format(time="TIMESTAMPTZ"))
        server.commit()
        yield url, server, "%s"


def fill(database: Database, days: int) -> None:
    _, connection, mark = database
    chance = random.Random(3)
    for number, midnight in enumerate(DAYS[:days]):
        for statement, row in generate.changes(chance, number, midnight):
            connection.execute(statement.replace("?", mark), row)
    connection.commit()


def test_a_window_has_the_rows_that_changed_in_it(database: Database) -> None:
    """ARC-3: a batch window brings each changed row once, and no other."""
    fill(database, days=2)
    first = list(extract.changed_rows(database[0], DAYS[0], DAYS[1]))
    second = list(extract.changed_rows(database[0], DAYS[1], DAYS[2]))
    changed = [json.loads(record.value) for record in (*first, *second)]
    assert sorted(row["id"] for row in changed) == list(range(2 * generate.ORDERS_A_DAY))
    assert {row["updated_at"][:10] for row in changed[: len(first)]} == {"2026-03-02"}


def test_ranges_of_keys_meet_without_gap_or_overlap(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database, days=1)
    monkeypatch.setattr(extract, "RANGE", 7)
    ids = [json.loads(r.value)["id"] for r in extract.changed_rows(database[0], DAYS[0], DAYS[1])]
    assert ids == list(range(generate.ORDERS_A_DAY))


def test_keys_below_zero_are_read_too(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(database, days=1)
    _, connection, _ = database
    connection.execute("UPDATE orders SET id = id - 100")
    connection.commit()
    monkeypatch.setattr(extract, "RANGE", 7)
    ids = [json.loads(r.value)["id"] for r in extract.changed_rows(database[0], DAYS[0], DAYS[1])]
    assert ids == list(range(-100, generate.ORDERS_A_DAY - 100))


def test_a_missing_postgresql_client_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It comes with the tools of developers, and not with the package."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    rows = extract.changed_rows("postgresql://me@host/shop", DAYS[0], DAYS[1])
    with pytest.raises(SystemExit, match=r"pip install 'psycopg\[binary\]'"):
        next(rows)


def test_both_databases_return_the_same_rows(tmp_path: Path, postgres_url: str) -> None:
    def values(connect: Callable[[], Any], time: str, mark: str, name: str) -> list[Any]:
        with closing(connect()) as connection:
            connection.execute("DROP TABLE IF EXISTS orders")
            connection.execute(generate.CREATE.format(time=time))
            fill((name, connection, mark), days=1)
        return [json.loads(r.value) for r in extract.changed_rows(name, DAYS[0], DAYS[1])]

    import psycopg

    path = str(tmp_path / "shop.db")
    lite = values(lambda: sqlite3.connect(path), "TEXT", "?", path)
    server = values(lambda: psycopg.connect(postgres_url), "TIMESTAMPTZ", "%s", postgres_url)
    assert server == lite


@pytest.mark.parametrize("place", ["127.0.0.1:1/shop", "127.0.0.1:port/shop", "[::1/shop"])
def test_a_failed_connection_is_reported_without_the_password(place: str) -> None:
    import psycopg

    rows = extract.changed_rows(f"postgresql://me:otter-of-shop@{place}", DAYS[0], DAYS[1])
    with pytest.raises((psycopg.Error, ValueError)) as raised:
        next(rows)
    assert "otter-of-shop" not in "".join(traceback.format_exception(raised.value))
