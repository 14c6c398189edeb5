"""Tables refreshed to the lake's versions: appended to, loaded again, scanned, removed."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from headrace.lake.catalog import MergedViewEntry
from headrace.lake.rewriting import evolve
from headrace.lake.tables import Table
from headrace.serving.errors import TableNotFound, TableUnavailable
from headrace.serving.metrics import ServingMetrics
from headrace.serving.queries import Query
from headrace.serving.refreshing import Refresher
from headrace.serving.workers import Running
from tests.builders.lake_services import (
    COUNTS,
    ORDERS,
    SPEED,
    ServedLake,
    append,
    as_tuples,
    counts,
    covering,
    orders,
    replace,
    speed_rows,
)

Make = Callable[..., ServedLake]
COUNT = "SELECT count(*) FROM orders"


def test_a_table_is_loaded_when_it_is_first_asked_for(served: ServedLake) -> None:
    served.orders(1, 2, 3)
    served.refresh()
    assert served.state() == "listed"
    assert served.rows(COUNT) == [(3,)]
    assert served.state() == "loaded"


def test_listed_tables_can_be_found_and_described(served: ServedLake) -> None:
    served.orders(1)
    served.refresh()
    assert served.rows("SHOW TABLES") == [("orders",)]
    assert [row[:2] for row in served.rows("DESCRIBE orders")] == [
        ("id", "BIGINT"),
        ("item", "VARCHAR"),
    ]


def test_appended_rows_are_added_to_the_loaded_table(served: ServedLake) -> None:
    table = served.orders(1, 2)
    served.refresh()
    served.rows(COUNT)
    version = append(table, orders(3, 4))
    served.refresh()
    answer = served.ask(COUNT)
    assert (as_tuples(answer), answer.versions) == ([(4,)], {"refined.orders": version})
    assert (served.service.metrics.loads, served.service.metrics.appends) == (1, 1)


def test_commits_without_rows_advance_the_version(served: ServedLake) -> None:
    table = served.orders(1)
    served.refresh()
    served.rows(COUNT)
    version = table.append([])
    served.refresh()
    answer = served.ask(COUNT)
    assert (as_tuples(answer), answer.versions) == ([(1,)], {"refined.orders": version})


def test_a_rewritten_table_is_loaded_again(served: ServedLake) -> None:
    table = served.orders(1, 2, 3)
    served.refresh()
    served.rows(COUNT)
    replace(table, orders(7))
    served.refresh()
    assert served.rows("SELECT id FROM orders") == [(7,)]
    assert served.service.metrics.loads == 2


def test_removed_rows_are_gone(served: ServedLake) -> None:
    table = served.orders(1, 2, 3)
    served.refresh()
    served.rows(COUNT)
    table.delete("id = 2")
    served.refresh()
    assert served.rows("SELECT id FROM orders ORDER BY id") == [(1,), (3,)]


def test_a_new_column_is_there_with_the_rows_that_have_it(served: ServedLake) -> None:
    table = served.orders(1)
    served.refresh()
    served.rows(COUNT)
    evolve(table, ORDERS.append(pa.field("price", pa.float64())))
    append(table, pa.table({"id": [2], "item": ["x"], "price": [1.5]}))
    served.refresh()
    assert served.rows("SELECT id, price FROM orders ORDER BY id") == [(1, None), (2, 1.5)]


def test_a_table_that_is_made_while_we_serve_is_found(served: ServedLake) -> None:
    served.refresh()
    with pytest.raises(TableNotFound):
        served.rows(COUNT)
    served.orders(1)
    served.refresh()
    assert served.rows(COUNT) == [(1,)]


def test_a_table_made_again_in_the_same_place_is_another(served: ServedLake) -> None:
    import shutil

    table = served.orders(1, 2, 3)
    served.refresh()
    assert served.rows(COUNT) == [(3,)]
    shutil.rmtree(table.place)
    served.orders(9)
    served.refresh()
    served.refresh()
    assert served.rows("SELECT id FROM orders") == [(9,)]


def test_another_generation_takes_over_at_once(served: ServedLake) -> None:
    """ARC-2: a replayed table is switched to as a whole."""
    served.orders(1)
    served.refresh()
    assert served.rows("SELECT id FROM orders") == [(1,)]
    second = served.lake.create("refined.orders", ORDERS, generation=2)
    append(second, orders(100, 101))
    served.refresh()
    assert served.rows(COUNT) == [(1,)]
    served.lake.switch({"refined.orders": 2})
    served.refresh()
    assert served.rows("SELECT id FROM orders ORDER BY id") == [(100,), (101,)]


@pytest.mark.parametrize("is_warm", [True, False])
def test_a_table_becomes_a_merged_view_and_a_table_again_at_once(
    served: ServedLake, is_warm: bool
) -> None:
    """ARC-1, ARC-2: as after a change of architecture; the layers are found only while they are."""
    ask = "SELECT n FROM refined.counts"
    append(served.table("refined.counts", COUNTS), counts({"a": 3}))
    batch, speed = (
        served.lake.create(f"refined.counts__{name}", schema, generation=2)
        for name, schema in (("batch", COUNTS), ("speed", SPEED))
    )
    replace(batch, counts({"a": 3}), covering(5))
    append(speed, speed_rows([("a", 1, 6)]))
    view = MergedViewEntry("refined.counts", ("key",), {"n": "sum"}, batch.name, speed.name)
    served.refresh()
    assert not is_warm or served.rows(ask) == [(3,)]
    served.lake.switch({batch.name: 2, speed.name: 2}, hidden=[view.name], views={view.name: view})
    served.refresh()
    assert not is_warm or served.rows(ask) == [(4,)]
    assert served.rows("SELECT n FROM refined.counts__batch") == [(3,)]
    append(served.lake.create("refined.counts", COUNTS, generation=3), counts({"a": 5}))
    served.lake.switch({view.name: 3}, hidden=[view.name, batch.name, speed.name])
    served.refresh()
    assert served.rows(ask) == [(5,)]
    assert served.rows("SHOW TABLES") == [("counts",)]
    with pytest.raises(TableNotFound, match="counts__batch"):
        served.rows("SELECT n FROM refined.counts__batch")


def test_a_query_sees_one_version_while_others_are_published(served: ServedLake) -> None:
    table = served.orders(1)
    other = served.orders(1, name="refined.others")
    served.refresh()
    names = ["refined.orders", "refined.others"]
    served.rows("SELECT * FROM orders, others")
    with served.service.database.snapshot(names) as snapshot:
        append(table, orders(2))
        replace(other, orders(7, 8, 9))
        served.refresh()
        counted = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM others)"
        assert snapshot.cursor.sql(counted).fetchall() == [(1, 1)]
        assert [snapshot.publications[name].version for name in names] == [1, 1]
    assert served.rows(counted) == [(2, 3)]


def test_queries_in_threads_never_see_half_a_refresh(served: ServedLake) -> None:
    """Every version has rows of one generation only, and as many as its number."""
    table = served.orders(*range(100))
    served.refresh()
    served.rows(COUNT)
    stop = threading.Event()
    wrong: list[object] = []

    def ask() -> None:
        while not stop.is_set():
            sql = "SELECT count(*), count(DISTINCT id // 100) FROM orders"
            answer = served.service.queries.answer(Query(sql, None, 10), Running(30))
            found = (*as_tuples(answer)[0], answer.versions["refined.orders"])
            if found[:2] != (100, 1):
                wrong.append(found)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for generation in range(1, 15):
        replace(table, orders(*range(generation * 100, generation * 100 + 100)))
        served.service.refresher.unit("refined.orders").due_at = 0.0  # type: ignore[union-attr]
        served.refresh()
    stop.set()
    for asker in askers:
        asker.join()
    assert wrong == []
    assert served.service.metrics.loads == 15


def test_a_table_too_large_to_load_is_scanned(make_served: Make) -> None:
    served = make_served(memory_bytes=64 << 20)
    table = served.table()
    wide = ["x" * 10_000 for _ in range(5_000)]
    append(table, pa.table({"id": range(5_000), "item": wide}, schema=ORDERS))
    served.refresh()
    answer = served.ask("SELECT count(*), max(id) FROM orders WHERE id >= 10")
    assert (as_tuples(answer), answer.scanned) == ([(4990, 4999)], ["refined.orders"])
    assert served.state() == "scanned"
    append(table, orders(9_999))
    served.refresh()
    assert served.rows("SELECT max(id) FROM orders") == [(9_999,)]
    assert as_tuples(served.look_up("orders", id="9999")) == [(9_999, "item-9999")]


def test_a_loaded_table_that_grows_too_large_is_scanned_from_then_on(make_served: Make) -> None:
    served = make_served(memory_bytes=64 << 20)
    table = served.orders(1)
    served.refresh()
    assert served.ask(COUNT).scanned == []
    wide = ["x" * 10_000 for _ in range(5_000)]
    append(table, pa.table({"id": range(5_000), "item": wide}, schema=ORDERS))
    served.refresh()
    answer = served.ask(COUNT)
    assert (as_tuples(answer), answer.scanned) == ([(5_001,)], ["refined.orders"])


def test_tables_not_used_for_longest_make_room(make_served: Make) -> None:
    served = make_served(memory_bytes=64 << 20)
    item = ["x" * 1_000 for _ in range(11_000)]
    for name in "abcd":
        rows = pa.table({"id": range(11_000), "item": item}, schema=ORDERS)
        append(served.table(f"refined.{name}"), rows)
    served.refresh()
    for name in "abcd":
        assert served.rows(f"SELECT count(*) FROM {name}") == [(11_000,)]
    states = [served.state(f"refined.{name}") for name in "abcd"]
    assert (states[0], states[-1]) == ("listed", "loaded")
    assert served.service.metrics.evictions > 0
    assert served.rows("SELECT count(*) FROM a") == [(11_000,)]


def test_a_table_whose_files_are_gone_is_unavailable_and_the_others_are_not(
    served: ServedLake, caplog: pytest.LogCaptureFixture
) -> None:
    broken = served.orders(1, name="refined.broken")
    served.orders(1)
    for file in broken.files():
        (broken.place / file.path).unlink()
    served.refresh()
    with caplog.at_level(logging.WARNING), pytest.raises(TableUnavailable, match="broken"):
        served.rows("SELECT * FROM broken")
    assert served.rows(COUNT) == [(1,)]


def test_a_damaged_file_stops_neither_the_answers_nor_the_refresh_of_other_tables(
    served: ServedLake, caplog: pytest.LogCaptureFixture
) -> None:
    broken = served.orders(1, name="refined.broken")
    whole = served.orders(1)
    served.refresh()
    assert served.rows("SELECT count(*) FROM broken") == served.rows(COUNT) == [(1,)]
    replace(broken, orders(2))
    _damage(broken)
    append(whole, orders(2))
    with caplog.at_level(logging.WARNING):
        served.refresh()
        served.refresh()
    assert served.rows(COUNT) == [(2,)]
    assert served.rows("SELECT id FROM broken") == [(1,)]
    (warning,) = [one for one in caplog.records if "table not refreshed" in one.message]
    assert "Traceback" not in vars(warning)["error"]


def test_a_damaged_table_that_is_first_asked_for_is_unavailable(served: ServedLake) -> None:
    _damage(served.orders(1))
    served.refresh()
    with pytest.raises(TableUnavailable, match=r"refined\.orders cannot be read"):
        served.rows(COUNT)


def test_an_unreadable_generation_leaves_the_old_one_and_other_tables(
    served: ServedLake, caplog: pytest.LogCaptureFixture
) -> None:
    served.orders(1)
    other = served.orders(1, name="refined.others")
    served.refresh()
    assert served.rows(COUNT) == served.rows("SELECT count(*) FROM others") == [(1,)]
    second = served.lake.create("refined.orders", ORDERS, generation=2)
    append(second, orders(2, 3))
    _damage(second)
    served.lake.switch({"refined.orders": 2})
    append(other, orders(2))
    served.orders(7, name="refined.later")
    with caplog.at_level(logging.WARNING):
        served.refresh()
        served.refresh()
    assert served.rows("SELECT count(*) FROM others") == [(2,)]
    assert served.rows("SELECT id FROM later") == [(7,)]
    assert served.rows("SELECT id FROM orders") == [(1,)]
    assert len([one for one in caplog.records if "catalog not refreshed" in one.message]) == 1


def test_tables_that_were_loaded_for_generations_that_cannot_be_shown_are_dropped(
    served: ServedLake,
) -> None:
    names = "refined.aaa", "refined.orders"
    for name in names:
        served.orders(1, name=name)
    served.refresh()
    assert served.rows("SELECT count(*) FROM aaa, orders") == [(1,)]
    before = _stored(served)
    for name in names:
        append(served.lake.create(name, ORDERS, generation=2), orders(2, 3))
    _damage(served.lake.table("refined.orders", 2))
    served.lake.switch(dict.fromkeys(names, 2))
    served.refresh()
    assert (served.service.metrics.loads, _stored(served)) == (3, before)


def test_a_layer_that_was_loaded_is_dropped_where_the_other_cannot_be_read(
    served: ServedLake,
) -> None:
    batch, speed = served.merged_view()
    append(batch, counts({"a": 1}), covering(1))
    append(speed, speed_rows([("a", 1, 2)]))
    _damage(batch)
    served.refresh()
    for loads in (1, 2):
        with pytest.raises(TableUnavailable, match=r"refined\.counts cannot be read"):
            served.rows("SELECT * FROM counts")
        assert (served.service.metrics.loads, _stored(served)) == (loads, [])


def test_a_table_is_dropped_whose_index_cannot_be_made(served: ServedLake) -> None:
    batches = orders(1, 2).to_reader()
    with pytest.raises(duckdb.Error, match="there_is_none"):
        served.service.database.load(batches, ["id", "there_is_none"])
    assert _stored(served) == []


def test_a_table_that_failed_to_load_is_retried_after_a_pause(tmp_path: Path) -> None:
    """Else a table that takes a minute to fail would be loaded all the time."""
    now = [0.0]
    lake = ServedLake(tmp_path / "lake")
    settings, database, metrics = lake.settings, lake.service.database, ServingMetrics()

    def clock() -> float:
        now[0] += 1.0  # All that is timed takes a second or more.
        return now[0]

    refresher = Refresher(settings, database, metrics, clock)
    try:
        lake.orders(1)
        refresher.round()
        refresher.warm(["refined.orders"], 60)
        second = lake.lake.create("refined.orders", ORDERS, generation=2)
        append(second, orders(2))
        _damage(second)
        lake.lake.switch({"refined.orders": 2})
        failures = []
        for later in (0.0, 0.0, 100.0):
            now[0] += later
            refresher.round()
            failures.append(metrics.load_failures)
        assert failures == [1, 1, 2]
    finally:
        refresher.close()
        lake.close()


@pytest.mark.parametrize("by", [None, ["kind"]])
def test_files_that_the_wheel_has_rewritten_are_filtered_by_texts_and_bytes(
    make_served: Make, by: list[str] | None
) -> None:
    """It writes both as views, with which Arrow can compare nothing."""
    served = make_served(memory_bytes=14 << 20)
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("code", pa.binary())])
    table = served.lake.create("refined.codes", schema, partition_by=by or ())
    wide = [f"{number:08}".encode() * 1_000 for number in range(4_000)]
    append(table, pa.table({"id": range(4_000), "kind": ["a"] * 4_000, "code": wide}, schema))
    table.delete("id = 7")
    append(table, pa.table({"id": [4_000], "kind": ["b"], "code": [b"x"]}, schema))
    served.refresh()
    answers = [
        served.ask("SELECT id FROM codes WHERE kind = 'b' AND id > 5"),
        served.ask("SELECT id FROM codes WHERE code IN ('x'::BLOB, 'y'::BLOB)"),
        served.ask("SELECT b.id FROM codes a JOIN codes b USING (code) WHERE a.kind > 'a'"),
    ]
    assert [as_tuples(answer) for answer in answers] == [[(4_000,)]] * 3
    assert [answer.scanned for answer in answers] == [["refined.codes"]] * 3
    assert as_tuples(served.look_up("codes", code="x")) == [(4_000, "b", b"x")]


def test_a_failed_refresh_keeps_the_current_rows(
    served: ServedLake, caplog: pytest.LogCaptureFixture
) -> None:
    table = served.orders(1)
    served.refresh()
    assert served.rows(COUNT) == [(1,)]
    append(table, orders(2))
    for file in table.added(1, 2):
        (table.place / file.path).rename(table.place / "away")
    with caplog.at_level(logging.WARNING):
        served.refresh()
        served.refresh()
    assert served.rows(COUNT) == [(1,)]
    assert len([one for one in caplog.records if "table not refreshed" in one.message]) == 1


def test_a_large_table_gets_an_index_for_each_column_it_is_looked_up_by(
    served: ServedLake,
) -> None:
    served.orders(*range(120_000))
    served.refresh()
    for _ in range(3):
        served.look_up("orders", id="77")
        served.look_up("orders", ITEM="item-7")
    served.refresh()
    served.refresh()
    unit = served.service.refresher.unit("refined.orders")
    assert unit is not None
    assert unit.tables[0].indexes == ("id", "item")
    assert as_tuples(served.look_up("orders", id="119999")) == [(119_999, "item-119999")]
    assert as_tuples(served.look_up("orders", item="item-119999")) == [(119_999, "item-119999")]


def test_a_column_that_cannot_be_indexed_does_not_keep_others_from_it(served: ServedLake) -> None:
    tagged = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.int64()))])
    numbers = range(100_000)
    rows = {"id": numbers, "tags": [[number] for number in numbers]}
    append(served.table("refined.tagged", tagged), pa.table(rows, schema=tagged))
    served.refresh()
    for _ in range(3):
        served.look_up("tagged", tags="[7]")
        served.look_up("tagged", id="7")
    served.refresh()
    unit = served.service.refresher.unit("refined.tagged")
    assert unit is not None
    assert (unit.tables[0].indexes, unit.failure) == (("id",), "")


def test_an_index_that_exceeds_the_memory_is_not_made(make_served: Make) -> None:
    served = make_served(memory_bytes=14 << 20)
    served.orders(*range(120_000))
    served.refresh()
    for _ in range(3):
        served.look_up("orders", id="77")
    served.refresh()
    unit = served.service.refresher.unit("refined.orders")
    assert unit is not None
    assert served.state() == "loaded"
    assert unit.tables[0].indexes == ()


def _stored(served: ServedLake) -> list[str]:
    """The tables in the database that hold rows of the lake."""
    sql = "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 't%' ORDER BY ALL"
    with served.service.database.cursor() as cursor:
        return [name for (name,) in cursor.execute(sql).fetchall()]


def _damage(table: Table) -> None:
    for file in table.files():
        (table.place / file.path).write_bytes(b"not a Parquet file" * 10)
