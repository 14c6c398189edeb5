"""Pipelines run on a real Spark, from topics to tables."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from headrace.client.admin import Admin
from headrace.client.producer import Producer
from headrace.lake.errors import TableLost
from headrace.pipelines.commands import (
    Overrides,
    backfill,
    drop_generation,
    load_all,
    prepared,
    redrive,
    replay,
    run,
    status,
    switch_back,
)
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.project import load
from headrace.pipelines.running.correcting.replay import Replay
from headrace.pipelines.running.driving.runner import PipelineRunner
from headrace.pipelines.running.errors import FlowsFailed, StateDisagrees
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, eventually, send, toml
from tests.spark.source_topics import read

SCHEMA = "id LONG, name STRING, amount DOUBLE"


@pytest.fixture
def folder(tmp_path: Path, broker: BrokerProcess, spark: SparkSession) -> Folder:
    return Folder(tmp_path / "pipeline", broker, spark)


def order(number: int, **more: object) -> dict[str, object]:
    return {"id": number, "name": f"n{number % 3}", "amount": number / 2, **more}


def change(number: int, city: str | None, seq: int, op: str = "u") -> dict[str, object]:
    return {"id": number, "city": city, "seq": seq, "op": op}


def test_rows_pass_through_the_zones_each_once(folder: Folder, make_topic: MakeTopic) -> None:
    """ARC-4"""
    topic = make_topic(partitions=3)
    folder.write(
        pipeline_toml=f'[pipeline]\nname = "zones"\n[sources.orders]\ntopic = "{topic}"\n',
        tables_sql="""
        CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);

        CREATE STREAMING TABLE staging.orders AS
        SELECT o.*, topic, partition, offset, value AS _payload,
          CASE WHEN o.id IS NULL THEN 'no order' END AS _error
        FROM (SELECT *, from_json(CAST(value AS STRING), 'id LONG, name STRING, amount DOUBLE') AS o
              FROM STREAM(raw.orders));

        CREATE STREAMING TABLE trusted.orders (
          CONSTRAINT positive EXPECT (amount > 0) ON VIOLATION QUARANTINE ROW,
          CONSTRAINT one EXPECT UNIQUE (id) ON VIOLATION DROP ROW
        ) AS SELECT id, name, amount FROM STREAM(staging.orders);

        CREATE MATERIALIZED VIEW refined.by_name AS
        SELECT name, count(*) AS orders, sum(amount) AS amount FROM trusted.orders GROUP BY name;
        """,
    )
    sent = [order(n) for n in range(1, 61)]
    send(folder.broker, topic, [*sent, order(61, amount=-1.0), order(7)])
    with Producer(folder.broker.bootstrap_servers) as producer:
        producer.send(topic, "{torn", headers={"from": b"shop"})
    folder.once()
    raw = folder.lake.table("raw.orders")
    headers = [row["headers"] for row in raw.rows().to_pylist() if row["headers"]]
    assert headers == [[{"key": "from", "value": b"shop"}]]
    assert raw.partition_by == ("topic", "day")
    assert all(row["day"] == row["timestamp"].date() for row in raw.rows().to_pylist())
    assert raw.properties["delta.appendOnly"] == "true"
    raw.set_properties({"delta.appendOnly": "false"})  # As older releases have made it.
    folder.once()
    assert raw.properties["delta.appendOnly"] == "true"
    assert len(folder.rows("raw.orders", "offset")) == 63
    assert folder.rows("staging.orders", "id") == sorted([*range(1, 62), 7])
    assert folder.rows("trusted.orders", "id") == list(range(1, 61))
    assert [row[1] for row in folder.rows("refined.by_name", "name", "orders")] == [20, 20, 20]
    refused = folder.lake.table("quarantine.staging__orders").rows().to_pylist()
    assert [(row["payload"], row["reason"]) for row in refused] == [(b"{torn", "no order")]
    assert folder.rows("quarantine.trusted__orders", "rule") == ["positive"]
    lineage = folder.lake.table("raw.orders").history.lineage()
    assert lineage is not None
    assert lineage.pipeline_fingerprint == load(folder.path).fingerprint
    (stands,) = status([folder.path], folder.overrides)
    assert stands.fingerprint == lineage.pipeline_fingerprint
    for name in ("quarantine.trusted__orders", "refined.by_name"):
        other = folder.lake.table(name).history.lineage()
        assert other is not None
        assert other.pipeline_fingerprint == lineage.pipeline_fingerprint
    assert sum(to - origin for origin, to in lineage.offsets[topic].values()) == 63


def test_two_flows_into_one_table_lose_no_row(folder: Folder, make_topic: MakeTopic) -> None:
    """Spark's own pipelines lost half of the rows here and reported success."""
    first, second = make_topic("a"), make_topic("b")
    folder.write(
        pipeline_toml=f'[pipeline]\nname = "two"\n[sources.a]\ntopic = "{first}"\n'
        f'[sources.b]\ntopic = "{second}"\n',
        tables_py="""
from headrace import pipelines as dp

dp.create_streaming_table("raw.both")


@dp.append_flow(target="raw.both")
def from_a():
    return dp.read_stream("sources.a").select("topic", "offset", "value")


@dp.append_flow(target="raw.both")
def from_b():
    return dp.read_stream("sources.b").select("topic", "offset", "value")
""",
    )
    for topic in (first, second):
        send(folder.broker, topic, (order(n) for n in range(10_000)))
    folder.once()
    expected = [(t, n) for t in (first, second) for n in range(10_000)]
    assert folder.rows("raw.both", "topic", "offset") == sorted(expected)


def test_lag_tools_see_how_far_a_pipeline_is(folder: Folder, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    folder.write(
        pipeline_toml=toml("seen", topic, SCHEMA),
        tables_sql="CREATE STREAMING TABLE staging.o AS SELECT id FROM STREAM(sources.events);",
    )
    send(folder.broker, topic, (order(n) for n in range(25)))
    folder.once()
    with Admin(folder.broker.bootstrap_servers) as admin:
        committed = admin.groups.committed("seen.staging.o")
    assert sum(offset for offset, _ in committed.values()) == 25
    (stands,) = status([folder.path], folder.overrides)
    assert (stands.state, stands.flows[0].rows_out) == ("done", 25)


def test_a_failing_expectation_keeps_nothing_of_the_batch_and_gives_advice(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("strict", topic, SCHEMA),
        tables_sql="CREATE STREAMING TABLE staging.o"
        " (CONSTRAINT named EXPECT (name IS NOT NULL) ON VIOLATION FAIL UPDATE)"
        " AS SELECT * FROM STREAM(sources.events);",
    )
    send(folder.broker, topic, [order(1), order(2, name=None)])
    with pytest.raises(FlowsFailed, match=r"1 rows for staging.o break .*'named'"):
        folder.once()
    assert folder.rows("staging.o", "id") == []
    assert not list((folder.path / "lake" / "staging" / "o").glob("*.parquet"))


@pytest.mark.parametrize("keys", ["", "KEYS (id)"])
def test_a_gate_promotes_nothing_of_a_batch_with_too_many_rejected_rows(
    keys: str, folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4"""
    topic = make_topic()
    gate = "[zones.trusted]\nquarantined_max = {}\njudged_rows_min = 4\n"
    settings = toml("gated", topic, SCHEMA)
    folder.write(
        pipeline_toml=settings + gate.format(0.5),
        tables_sql="CREATE STREAMING TABLE trusted.o"
        " (CONSTRAINT named EXPECT (name IS NOT NULL) ON VIOLATION QUARANTINE ROW)"
        f" {keys} AS SELECT id, name FROM STREAM(sources.events);",
    )
    send(folder.broker, topic, [order(1), *(order(n, name=None) for n in (2, 3, 4))])
    with pytest.raises(FlowsFailed, match=r"3 of 4 rows for trusted.o .*\(named 3\).* 50% at most"):
        folder.once()
    assert folder.rows("trusted.o", "id") == []
    assert folder.rows("quarantine.trusted__o", "rule") == []
    folder.write(pipeline_toml=settings + gate.format(0.75))
    folder.once()
    assert folder.rows("trusted.o", "id") == [1]
    assert folder.rows("quarantine.trusted__o", "rule") == ["named"] * 3


def test_a_pipeline_that_breaks_rules_of_promotion_does_not_run(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4"""
    folder.write(
        pipeline_toml=toml("ruled", make_topic(), SCHEMA) + '[zones.trusted]\nreads = ["staging"]',
        tables_sql="CREATE STREAMING TABLE trusted.o AS SELECT id FROM STREAM(sources.events);",
    )
    with pytest.raises(PipelineError, match=r"tables.sql:1: trusted.o reads sources.events"):
        folder.once()


def test_a_single_pass_that_is_stopped_reports_its_unfinished_work(
    folder: Folder, make_topic: MakeTopic
) -> None:
    folder.write(
        pipeline_toml=toml("halted", make_topic(), SCHEMA),
        tables_sql="CREATE STREAMING TABLE raw.o AS SELECT * FROM STREAM(sources.events);"
        "CREATE MATERIALIZED VIEW refined.n AS SELECT count(*) AS n FROM raw.o;",
    )
    with pytest.raises(
        PipelineError, match=r"stopped on request, before the end: raw.o, refined.n"
    ):
        run(
            [folder.path],
            is_once=True,
            overrides=folder.overrides,
            spark=folder.spark,
            is_stopped=lambda: True,
        )
    (stands,) = status([folder.path], folder.overrides)
    assert stands.state == "stopped"


def test_rejected_rows_reach_the_dead_letter_topic_and_are_redriven_after_a_fix(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4: with its bytes as they came, and in headers why it was refused and where it was."""
    topic, letters = make_topic(partitions=2), make_topic("letters")
    strict = (
        "CREATE STREAMING TABLE staging.o"
        " (CONSTRAINT cheap EXPECT (amount < 3) ON VIOLATION QUARANTINE ROW)"
        f" DEAD LETTER TOPIC '{letters}'"
        " AS SELECT * FROM STREAM(sources.events);"
    )
    folder.write(pipeline_toml=toml("letters", topic, SCHEMA), tables_sql=strict)
    bad = b'{"id": 77, "name": "x", "amount": "lots"}'
    send(folder.broker, topic, [*(order(n) for n in range(10)), bad])
    folder.once()
    assert folder.rows("staging.o", "id") == list(range(6))
    refused = {json.dumps(order(n)).encode(): ("cheap", "amount < 3") for n in range(6, 10)}
    refused[bad] = ("unreadable", "amount: 'lots' is not a DOUBLE")
    expected = [
        (
            f"{topic}-{partition}-{offset}".encode(),
            value,
            {
                "headrace.table": b"staging.o",
                "headrace.flow": b"staging.o",
                "headrace.rule": refused[value][0].encode(),
                "headrace.reason": refused[value][1].encode(),
                "headrace.topic": topic.encode(),
                "headrace.partition": b"%d" % partition,
                "headrace.offset": b"%d" % offset,
            },
        )
        for (partition, offset), value in folder.records(topic)
        if value in refused
    ]
    found = read(folder.spark, folder.broker.bootstrap_servers, letters, includeHeaders="true")
    assert sorted(map(letter, found.collect()), key=itemgetter(0)) == sorted(
        expected, key=itemgetter(0)
    )
    folder.write(tables_sql=strict.replace("< 3", "< 4"))
    redriven = redrive(folder.path, "staging.o", overrides=folder.overrides, spark=folder.spark)
    assert (redriven.taken, redriven.refused) == (5, 3)
    assert folder.rows("staging.o", "id") == list(range(8))
    assert len(folder.rows("quarantine.staging__o", "rule")) == 3


def letter(row: Row) -> tuple[bytes, bytes, dict[str, bytes]]:
    """Key, value and headers of a dead letter."""
    headers = {header["key"]: bytes(header["value"]) for header in row["headers"]}
    return bytes(row["key"]), bytes(row["value"]), headers


def test_quarantine_keeps_the_original_bytes_where_rows_are_of_single_records(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-4"""
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("bytes", topic, SCHEMA),
        tables_sql="""
        CREATE STREAMING TABLE staging.chosen
          (CONSTRAINT cheap EXPECT (amount < 3) ON VIOLATION QUARANTINE ROW)
          AS SELECT id, amount FROM STREAM(sources.events) WHERE id > 0;
        """,
        functions_py="""
from headrace import pipelines as dp


@dp.table(name="staging.returned")
@dp.expect_or_quarantine("cheap", "amount < 3")
def returned():
    return dp.read_stream("sources.events").drop("name")
""",
    )
    dear = b'{ "amount": 5, "id": 2,  "name": "as it came" }'
    send(folder.broker, topic, [b'{"id": 1, "amount": 1}', dear])
    folder.once()
    assert folder.rows("quarantine.staging__chosen", "payload") == [dear]
    assert folder.rows("quarantine.staging__returned", "payload") == [dear]
    assert folder.rows("staging.chosen", "id") == [1]
    assert folder.lake.table("staging.chosen").schema.names == ["id", "amount"]


def test_a_replay_builds_beside_compares_switches_and_switches_back(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-2"""
    topic = make_topic(partitions=2)
    tables = (
        "CREATE STREAMING TABLE raw.o {} AS SELECT * FROM STREAM(sources.events);\n"
        "CREATE STREAMING TABLE refined.o AS SELECT id, {} AS v FROM STREAM(raw.o);"
    )
    whole = tables.format("PARTITIONED BY ()", "amount")  # As older releases have made it.
    folder.write(pipeline_toml=toml("again", topic, SCHEMA), tables_sql=whole)
    send(folder.broker, topic, (order(n) for n in range(10)))
    folder.once()
    folder.write(tables_sql=tables.format("", "amount"))
    send(folder.broker, topic, (order(n) for n in range(10, 20)))
    folder.once()
    assert "day" not in folder.lake.table("raw.o").schema.names
    folder.write(tables_sql=tables.format("", "amount * 10"))
    built = replay(folder.path, overrides=folder.overrides, spark=folder.spark)
    assert folder.lake.table("raw.o").partition_by == ("topic", "day")
    assert {one.table: one.contents.only_after for one in built.compared if not one.is_equal} == {
        "raw.o": 0,  # The day is new.
        "refined.o": 19,  # There are twenty; the one with 0 exists before and after.
    }
    assert folder.rows("refined.o", "v") == sorted(n / 2 * 10 for n in range(20))
    send(folder.broker, topic, [order(20)])
    folder.once()
    assert len(folder.rows("refined.o", "id")) == 21
    switch_back(folder.path, overrides=folder.overrides)
    assert folder.rows("refined.o", "v") == sorted(n / 2 for n in range(20))
    built = replay(folder.path, keep=["raw"], overrides=folder.overrides, spark=folder.spark)
    assert [one.table for one in built.compared] == ["refined.o"]
    assert folder.lake.table("raw.o").partition_by == ()
    assert folder.rows("refined.o", "v") == sorted(n / 2 * 10 for n in range(20))


def test_a_replay_with_other_values_is_rejected_and_can_be_dropped(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    tables = (
        "CREATE STREAMING TABLE raw.o (CONSTRAINT cheap EXPECT (amount < 3) ON VIOLATION"
        " QUARANTINE ROW) AS SELECT id, {} AS amount FROM STREAM(sources.events);"
    )
    folder.write(pipeline_toml=toml("equal", topic, SCHEMA), tables_sql=tables.format("amount"))
    send(folder.broker, topic, (order(n) for n in range(10)))
    folder.once()
    arguments: dict[str, Any] = {"overrides": folder.overrides, "spark": folder.spark}
    shown: list[Replay] = []
    folder.write(tables_sql=tables.format("-amount"))
    with pytest.raises(PipelineError, match=r"differ: quarantine.raw__o, raw.o\. Nothing"):
        replay(folder.path, must_be_equal=True, show=shown.append, **arguments)
    assert shown[0].compared[1].contents.only_after == 9
    dropped = drop_generation(folder.path, 2, overrides=folder.overrides)
    assert set(dropped.tables) == {"raw.o", "quarantine.raw__o"}
    folder.write(tables_sql=tables.format("amount"))
    built = replay(folder.path, must_be_equal=True, **arguments)
    assert built.generations == {"raw.o": 3, "quarantine.raw__o": 3}
    assert folder.rows("raw.o", "id") == list(range(6))


def test_a_backfill_and_a_replay_keep_the_start_of_a_flow(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """A flow joins two topics, each read by its own source.

    The pipeline's own cluster does not answer, so no request may go there.
    """
    topic, other = make_topic(partitions=2), make_topic()
    servers = folder.broker.bootstrap_servers
    options = f'startingOffsets = "latest"\n"kafka.bootstrap.servers" = "{servers}"\n'
    events = toml("late", topic, SCHEMA)
    others = events[events.index("[sources") :].replace("events", "others").replace(topic, other)
    folder.write(
        pipeline_toml=f"{events}[sources.events.options]\n{options}"
        f"{others}[sources.others.options]\n{options}",
        tables_sql="CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.events)"
        " UNION ALL SELECT id FROM STREAM(sources.others);",
    )
    given: dict[str, Any] = {"overrides": Overrides("127.0.0.1:1"), "spark": folder.spark}
    send(folder.broker, topic, (order(n) for n in range(20)))
    send(folder.broker, other, [*(order(n) for n in range(20, 30)), b"{torn"])
    run([folder.path], is_once=True, **given)
    send(folder.broker, topic, (order(n) for n in range(30, 40)))
    run([folder.path], is_once=True, **given)
    assert folder.rows("raw.o", "id") == list(range(30, 40))
    with Admin(servers) as admin:
        assert sum(at for at, _ in admin.groups.committed("late.raw.o").values()) == 30 + 11
    assert all(one.is_equal for one in replay(folder.path, **given).compared)
    found = [backfill(folder.path, "raw.o", **given)["raw.o"].is_idle for _ in range(2)]
    assert (found, folder.rows("raw.o", "id")) == ([False, True], list(range(40)))
    assert folder.rows("quarantine.raw__o", "topic", "payload") == [(other, b"{torn")]
    with Admin(servers) as admin:
        admin.partitions.delete_records_before(other, {0: 5})
    with pytest.raises(PipelineError, match=rf"{other}-0 now begins at offset 5.*`--keep raw`"):
        replay(folder.path, **given)
    shutil.rmtree(next(folder.path.glob("lake/_headrace/pipelines/late/flows/raw.o")))
    with pytest.raises(PipelineError, match=r"with its start is gone: .*\. Restore it"):
        replay(folder.path, **given)


def test_change_events_keep_a_table_by_key_in_spite_of_their_order(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("changes", topic, "id LONG, city STRING, seq LONG, op STRING"),
        tables_sql="""
        CREATE STREAMING TABLE trusted.customers;
        CREATE FLOW now AS AUTO CDC INTO trusted.customers FROM STREAM(sources.events) KEYS (id)
          APPLY AS DELETE WHEN op = 'd' SEQUENCE BY seq
          COLUMNS * EXCEPT (op, topic, partition, offset, timestamp) STORED AS SCD TYPE 1;
        CREATE STREAMING TABLE trusted.customer_history;
        CREATE FLOW past AS AUTO CDC INTO trusted.customer_history FROM STREAM(sources.events)
          KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY seq
          COLUMNS * EXCEPT (op, topic, partition, offset, timestamp) STORED AS SCD TYPE 2;
        """,
    )
    send(folder.broker, topic, [change(1, "Rome", 1), change(1, "Oslo", 5), change(2, "Bonn", 1)])
    folder.once()
    send(folder.broker, topic, [change(1, "Lyon", 3), change(2, None, 4, "d"), change(2, "Ulm", 2)])
    folder.once()
    assert folder.rows("trusted.customers", "id", "city") == [(1, "Oslo")]
    history = folder.rows("trusted.customer_history", "id", "__START_AT", "city", "__END_AT")
    assert history[:2] == [(1, 1, "Rome", 3), (1, 3, "Lyon", 5)]
    assert history[2:] == [(1, 5, "Oslo", None), (2, 1, "Bonn", 2), (2, 2, "Ulm", 4)]


def test_change_events_may_be_put_in_order_by_an_expression(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("ordered", topic, "id LONG, city STRING, day LONG, seq LONG"),
        now_sql="""
        CREATE STREAMING TABLE trusted.now;
        CREATE FLOW now AS AUTO CDC INTO trusted.now FROM STREAM(sources.events) KEYS (id)
          SEQUENCE BY struct(day, seq)
          COLUMNS * EXCEPT (topic, partition, offset, timestamp) STORED AS SCD TYPE 1;
        """,
        past_py="""
from headrace import pipelines as dp

dp.create_streaming_table("trusted.past")
dp.create_auto_cdc_flow(
    "trusted.past",
    "sources.events",
    keys=["id"],
    sequence_by="day * 100 + seq",
    except_column_list=["topic", "partition", "offset", "timestamp"],
    stored_as_scd_type=2,
)
""",
    )
    send(folder.broker, topic, [{"id": 1, "city": "Oslo", "day": 2, "seq": 1}])
    folder.once()
    send(folder.broker, topic, [{"id": 1, "city": "Rome", "day": 1, "seq": 9}])
    folder.once()
    assert folder.rows("trusted.now", "id", "city", "seq") == [(1, "Oslo", 1)]
    past = folder.rows("trusted.past", "__START_AT", "city", "__END_AT")
    assert past == [(109, "Rome", 201), (201, "Oslo", None)]
    assert folder.lake.table("trusted.past").schema.names == [
        *("id", "city", "day", "seq", "__START_AT", "__END_AT")
    ]


def test_a_new_nullable_column_is_added_and_a_narrower_type_is_rejected(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    create = "CREATE STREAMING TABLE staging.o AS SELECT {} FROM STREAM(sources.events);"
    folder.write(pipeline_toml=toml("schema", topic, SCHEMA), tables_sql=create.format("id"))
    send(folder.broker, topic, [order(1)])
    folder.once()
    folder.write(tables_sql=create.format("id, name"))
    send(folder.broker, topic, [order(2)])
    folder.once()
    assert folder.rows("staging.o", "id", "name") == [(1, None), (2, "n2")]
    folder.write(tables_sql=create.format("CAST(id AS STRING) AS id, name"))
    with pytest.raises(PipelineError, match=r"tables\.sql:1: staging\.o .*\bid\b"):
        folder.once()
    assert len(folder.rows("staging.o", "id")) == 2


@pytest.mark.parametrize("removed", ["flows/*/g1/checkpoint", "flows", "../gone"])
def test_a_removed_checkpoint_is_not_silently_restarted(
    removed: str, folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("gone", topic, SCHEMA),
        tables_sql="CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.events);",
    )
    send(folder.broker, topic, [order(1)])
    folder.once()
    (place,) = (folder.path / "lake" / "_headrace" / "pipelines" / "gone").glob(removed)
    shutil.rmtree(place)
    with pytest.raises(StateDisagrees, match="replay"):
        folder.once()
    assert folder.rows("raw.o", "id") == [1]
    replay(folder.path, overrides=folder.overrides, spark=folder.spark)
    send(folder.broker, topic, [order(2)])
    folder.once()
    assert folder.rows("raw.o", "id") == [1, 2]


def test_a_renamed_flow_does_not_add_its_rows_twice_and_resumes_after_the_advised_step(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    tables = (
        "CREATE STREAMING TABLE raw.o;"
        "CREATE FLOW {} AS INSERT INTO raw.o BY NAME SELECT id FROM STREAM(sources.events);"
    )
    folder.write(pipeline_toml=toml("named", topic, SCHEMA), tables_sql=tables.format("f"))
    send(folder.broker, topic, [order(1)])
    folder.once()
    folder.write(tables_sql=tables.format("g"))
    send(folder.broker, topic, [order(2)])
    for _ in range(2):
        with pytest.raises(StateDisagrees, match="call it f again, or rename the folder"):
            folder.once()
    flows = folder.path / "lake" / "_headrace" / "pipelines" / "named" / "flows"
    (flows / "f").rename(flows / "g")
    folder.once()
    assert folder.rows("raw.o", "id") == [1, 2]


def test_a_removed_table_is_rebuilt_on_request(folder: Folder, make_topic: MakeTopic) -> None:
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("lost", topic, SCHEMA),
        tables_sql="""
        CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.events);
        CREATE STREAMING TABLE staging.o AS SELECT id FROM STREAM(raw.o);
        CREATE MATERIALIZED VIEW refined.n AS SELECT count(*) AS n FROM staging.o;
        """,
    )
    send(folder.broker, topic, [order(1)])
    folder.once()
    shutil.rmtree(folder.path / "lake" / "raw" / "o")
    with pytest.raises(
        TableLost, match=r"raw.o: there is no .* `headrace pipelines replay FOLDER`"
    ):
        folder.once()
    with pytest.raises(TableLost):
        replay(folder.path, keep=["raw"], overrides=folder.overrides, spark=folder.spark)
    replay(folder.path, overrides=folder.overrides, spark=folder.spark)
    send(folder.broker, topic, [order(2)])
    folder.once()
    assert folder.rows("staging.o", "id") == [1, 2]
    assert folder.rows("refined.n", "n") == [2]


def test_a_removed_view_is_rebuilt(folder: Folder, make_topic: MakeTopic) -> None:
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("view", topic, SCHEMA),
        tables_sql="""
        CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.events);
        CREATE MATERIALIZED VIEW refined.n AS SELECT count(*) AS n FROM raw.o;
        """,
    )
    send(folder.broker, topic, [order(1)])
    folder.once()
    shutil.rmtree(folder.path / "lake" / "refined" / "n")
    folder.once()
    assert folder.rows("refined.n", "n") == [1]


def test_a_sink_gets_each_row_once_over_runs(folder: Folder, make_topic: MakeTopic) -> None:
    topic, out = make_topic(), make_topic("alerts")
    folder.write(
        pipeline_toml=toml("alerts", topic, SCHEMA),
        tables_sql=f"""
        CREATE SINK alerts TOPIC '{out}' FORMAT json;
        CREATE FLOW large AS INSERT INTO alerts BY NAME
          SELECT CAST(id AS STRING) AS key, id, amount FROM STREAM(sources.events) WHERE amount > 2;
        """,
    )
    send(folder.broker, topic, (order(n) for n in range(8)))
    folder.once()
    folder.once()
    assert [json.loads(value) for value in folder.read_topic(out)] == [
        {"id": n, "amount": n / 2} for n in (5, 6, 7)
    ]


@pytest.mark.parametrize("guarantee", ["idempotent", "at-least-once"])
def test_a_sink_may_promise_less(guarantee: str, folder: Folder, make_topic: MakeTopic) -> None:
    topic, out = make_topic(), make_topic("out")
    folder.write(
        pipeline_toml=toml("less", topic, SCHEMA),
        tables_sql=f"CREATE SINK out TOPIC '{out}' GUARANTEE '{guarantee}';"
        "CREATE FLOW f AS INSERT INTO out BY NAME SELECT id FROM STREAM(sources.events);",
    )
    send(folder.broker, topic, [order(1)])
    folder.once()
    assert folder.read_topic(out) == [b'{"id":1}']


def test_a_flow_may_join_two_topics(folder: Folder, make_topic: MakeTopic) -> None:
    orders, names = make_topic("orders"), make_topic("names")
    folder.write(
        pipeline_toml=toml("joined", orders, "id LONG, amount DOUBLE")
        + f'[sources.names]\ntopic = "{names}"\nformat = "json"\n'
        'schema = "id LONG, name STRING"\n',
        tables_sql="""
        CREATE STREAMING TABLE staging.both AS SELECT o.id, n.name, o.amount
        FROM STREAM(sources.events) AS o JOIN STREAM(sources.names) AS n ON o.id = n.id;
        """,
    )
    send(folder.broker, orders, [{"id": n, "amount": 1.0} for n in range(10)])
    send(folder.broker, names, [{"id": n, "name": f"n{n}"} for n in range(5)])
    folder.once()
    send(folder.broker, names, [{"id": n, "name": f"n{n}"} for n in range(5, 10)])
    folder.once()
    assert folder.rows("staging.both", "id", "name") == [(n, f"n{n}") for n in range(10)]


def test_a_replay_requires_a_decision_about_sinks_and_they_resume(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic, out = make_topic(), make_topic("out")
    folder.write(
        pipeline_toml=toml("sinks", topic, SCHEMA),
        tables_sql=f"""
        CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.events);
        CREATE SINK out TOPIC '{out}';
        CREATE FLOW f AS INSERT INTO out BY NAME SELECT id FROM STREAM(raw.o);
        """,
    )
    send(folder.broker, topic, [order(1), order(2)])
    folder.once()
    with pytest.raises(PipelineError, match="--sinks"):
        replay(folder.path, overrides=folder.overrides, spark=folder.spark)
    replay(folder.path, sinks="from-now", overrides=folder.overrides, spark=folder.spark)
    send(folder.broker, topic, [order(3)])
    folder.once()
    assert folder.rows("raw.o", "id") == [1, 2, 3]
    assert [json.loads(value)["id"] for value in folder.read_topic(out)] == [1, 2, 3]


def test_a_view_whose_query_has_changed_is_recomputed(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    tables = (
        "CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.events);"
        "CREATE MATERIALIZED VIEW refined.v (CONSTRAINT small EXPECT (n < 2)"
        " ON VIOLATION QUARANTINE ROW) AS SELECT {} AS n FROM raw.o;"
    )
    folder.write(pipeline_toml=toml("edited", topic, SCHEMA), tables_sql=tables.format("id"))
    send(folder.broker, topic, [order(1), order(2)])
    folder.once()
    assert folder.rows("refined.v", "n") == [1]
    folder.write(tables_sql=tables.format("id - 1"))
    folder.once()
    assert folder.rows("refined.v", "n") == [0, 1]
    assert folder.rows("quarantine.refined__v", "rule") == []


def test_one_word_turns_kappa_into_lambda_and_back(folder: Folder, make_topic: MakeTopic) -> None:
    """ARC-1, ARC-2: in a single pass, then in a continuous run, in which lookups wait."""
    topic = make_topic()
    tables = (
        "CREATE STREAMING TABLE raw.o AS SELECT id, name FROM STREAM(sources.events);"
        "CREATE MERGED VIEW refined.n MERGE (n SUM) AS"
        " SELECT name, count(*) AS n FROM STREAM(raw.o) GROUP BY name;"
        "CREATE MATERIALIZED VIEW refined.total AS SELECT sum(n) AS n FROM refined.n;"
        "CREATE STREAMING TABLE refined.joined AS"
        " SELECT id, n FROM STREAM(raw.o) JOIN refined.n USING (name);"
    )
    sent = 0
    for architecture in ("kappa", "lambda", "kappa"):
        folder.write(
            pipeline_toml=toml("switch", topic, SCHEMA, architecture=architecture),
            tables_sql=tables,
        )
        send(folder.broker, topic, (order(n) for n in range(sent, sent + 6)))
        if sent:  # Refused before anything is done: readers still see the views of before.
            with pytest.raises(PipelineError, match=r"refined\.n is not in .* run FOLDER --once"):
                replay(folder.path, overrides=folder.overrides, spark=folder.spark)
            assert ("refined.n" in folder.lake.views()) == (architecture == "kappa")
        if sent == 12:
            break
        sent += 6
        folder.once()
        is_lambda = architecture == "lambda"
        lake = folder.lake
        rows = lake.merged_rows("refined.n") if is_lambda else lake.table("refined.n").rows()
        assert sorted(row["n"] for row in rows.to_pylist()) == [sent // 3] * 3
        assert folder.rows("refined.total", "n") == [sent]
        joined = folder.rows("refined.joined", "id", "n")[sent - 6 :]
        assert joined == [(n, sent // 3) for n in range(sent - 6, sent)]
    (pipeline,) = load_all([folder.path], folder.overrides)
    runner = PipelineRunner(prepared(folder.spark, pipeline))
    with ThreadPoolExecutor(1) as pool:
        try:
            runner.begin()
            states = {one.flow: one.state for one in runner.status_now("running").flows}
            assert states.pop("refined.joined") == "waiting"
            assert set(states.values()) == {"running"}
            assert "refined.n" in folder.lake.views()

            def is_everything_there() -> bool:
                runner.tick(pool, pool)
                return folder.rows("refined.joined", "id") == list(range(sent + 6))

            eventually(is_everything_there, "all rows joined")
            assert runner.migrations.views == set()
            assert (folder.lake.views(), runner.failures()) == ({}, [])
            assert min(n for _, n in folder.rows("refined.joined", "id", "n")[sent:]) >= sent // 3
        finally:
            runner.end(lambda: True)


def test_a_key_from_two_flows_is_stored_once(folder: Folder, make_topic: MakeTopic) -> None:
    first, second = make_topic("a"), make_topic("b")
    folder.write(
        pipeline_toml=toml("unique", first, SCHEMA)
        + f'[sources.second]\ntopic = "{second}"\nformat = "json"\nschema = "{SCHEMA}"\n',
        tables_sql="""
        CREATE STREAMING TABLE trusted.o (CONSTRAINT one EXPECT UNIQUE (id) ON VIOLATION DROP ROW);
        CREATE FLOW a AS INSERT INTO trusted.o BY NAME SELECT id FROM STREAM(sources.events);
        CREATE FLOW b AS INSERT INTO trusted.o BY NAME SELECT id FROM STREAM(sources.second);
        """,
    )
    for topic in (first, second):
        send(folder.broker, topic, (order(n) for n in range(300)))
    folder.once()
    assert folder.rows("trusted.o", "id") == list(range(300))


def test_records_are_admitted_and_categorised_at_entry(
    folder: Folder, make_topic: MakeTopic
) -> None:
    """ARC-7"""
    topic = make_topic()
    folder.write(
        pipeline_toml=toml("entry", topic, SCHEMA)
        + "where = \"amount >= 1\"\ncategory = \"if(amount > 2, 'large', 'small')\"\n"
        "priority = 1\n",
        tables_sql="CREATE STREAMING TABLE raw.o AS SELECT id, _category FROM"
        " STREAM(sources.events);",
    )
    send(folder.broker, topic, (order(n) for n in range(7)))
    folder.once()
    expected = [(n, "large" if n / 2 > 2 else "small") for n in range(2, 7)]
    assert folder.rows("raw.o", "id", "_category") == expected


def test_a_sink_with_a_removed_checkpoint_is_not_silently_restarted(
    folder: Folder, make_topic: MakeTopic
) -> None:
    topic, out = make_topic(), make_topic("out")
    folder.write(
        pipeline_toml=toml("sunk", topic, SCHEMA),
        tables_sql=f"CREATE SINK out TOPIC '{out}';"
        "CREATE FLOW f AS INSERT INTO out BY NAME SELECT id FROM STREAM(sources.events);",
    )
    send(folder.broker, topic, [order(1)])
    folder.once()
    shutil.rmtree(folder.path / "lake" / "_headrace" / "pipelines" / "sunk" / "flows")
    with pytest.raises(StateDisagrees, match="rename the flow"):
        folder.once()
    assert len(folder.read_topic(out)) == 1


def test_a_table_of_another_pipeline_is_not_written(folder: Folder, make_topic: MakeTopic) -> None:
    topic = make_topic()
    table = "CREATE STREAMING TABLE raw.o AS SELECT id FROM STREAM(sources.events);"
    for name in ("one", "two"):
        folder.write(pipeline_toml=toml(name, topic, SCHEMA), tables_sql=table)
        if name == "one":
            folder.once()
    with pytest.raises(PipelineError, match="belongs to the pipeline one"):
        folder.once()


def test_a_cycle_of_tables_is_reported(folder: Folder, make_topic: MakeTopic) -> None:
    folder.write(
        pipeline_toml=toml("circle", make_topic(), SCHEMA),
        tables_sql="CREATE MATERIALIZED VIEW refined.a AS SELECT * FROM refined.b;"
        "CREATE MATERIALIZED VIEW refined.b AS SELECT * FROM refined.a;",
    )
    with pytest.raises(PipelineError, match=r"refined\.a.*refined\.b"):
        folder.once()
