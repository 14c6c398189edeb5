"""The inputs of queries, found without running them."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace import pipelines as dp
from headrace.pipelines import read_stream
from headrace.pipelines import spark as session
from headrace.pipelines.analysing.reads import Read, reads_of

ZONE = "staging"


def helped() -> Any:
    return dp.read("raw.helped")


def plain() -> Any:
    return dp.read_stream("raw.a").join(dp.read("RAW.B"), "id")


def imported() -> Any:
    return read_stream("raw.a")


def through_a_helper() -> Any:
    return helped()


def by_a_name(table: str = "raw.c") -> Any:
    return dp.read(table), dp.read(f"{ZONE}.d")


def as_spark_users_do() -> Any:
    session.readStream.table("raw.a")
    session.read.table("raw.b")
    session.table("raw.c")
    dp.spark.sql("SELECT * FROM STREAM(raw.d)")
    return session.read.parquet("raw.no")


def of_something_else(other: Any = None) -> Any:
    return other.read("raw.a"), other.read.table("raw.b"), dp.read(other)


def itself() -> Any:
    return itself()


def closing_over(name: str) -> Callable[[], Any]:
    def inner() -> Any:
        return dp.read(name)

    return inner


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (plain, [("raw.a", True), ("raw.b", False)]),
        (imported, [("raw.a", True)]),
        (through_a_helper, [("raw.helped", False)]),
        (by_a_name, [("raw.c", False), ("staging.d", False)]),
        (
            as_spark_users_do,
            [("raw.a", True), ("raw.b", False), ("raw.c", False), ("raw.d", True)],
        ),
        (of_something_else, []),
        (itself, []),
        (closing_over("raw.z"), [("raw.z", False)]),
        (eval("lambda: 1"), []),
        ("SELECT * FROM STREAM(a.b) JOIN c.d", [("a.b", True), ("c.d", False)]),
        ("SELECT * FROM a.b, a.b", [("a.b", False)]),
        ("SELECT 'no end", []),
    ],
)
def test_reads_are_found_in_text(query: Any, found: list[tuple[str, bool]]) -> None:
    assert reads_of(query) == tuple(Read(name, is_stream) for name, is_stream in found)
