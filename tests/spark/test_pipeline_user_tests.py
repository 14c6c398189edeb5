"""Tests that users write for their pipelines: rows given, flows run, tables read."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.errors import ExpectationFailed
from headrace.pipelines.testing.pipeline_test import PipelineTest
from tests.builders.declared_pipelines import SETTINGS, write_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
PREFIX = """
[sources.orders.options]
metadataPrefix = "kafka_"
"""
TABLES = """
CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);
CREATE STREAMING TABLE raw.placed
AS SELECT id, kafka_topic AS topic, kafka_timestamp AS timestamp FROM STREAM(sources.orders);
CREATE STREAMING TABLE trusted.latest KEYS (id)
AS SELECT id, price FROM STREAM(raw.orders);
CREATE STREAMING TABLE trusted.sane (CONSTRAINT paid EXPECT (price > 0) ON VIOLATION FAIL UPDATE)
AS SELECT id, price FROM STREAM(raw.orders);
CREATE SINK alerts TOPIC 'alerts';
CREATE FLOW big AS INSERT INTO alerts BY NAME SELECT id FROM STREAM(raw.orders) WHERE price > 90;
"""


@pytest.fixture
def shop(spark: "SparkSession", tmp_path: Path) -> PipelineTest:
    folder = write_folder(tmp_path, {"a.sql": TABLES}, SETTINGS + PREFIX)
    return PipelineTest(folder, spark, tmp_path / "place")


def test_payloads_are_decoded_as_in_production(shop: PipelineTest) -> None:
    shop.given("sources.orders", ['{"id": 1, "price": 2.5}', b"this is no JSON"])
    shop.run("raw.orders")
    (row,) = shop.rows("raw.orders")
    found = (row["id"], row["price"], row["kafka_topic"], row["kafka_offset"])
    assert found == (1, 2.5, "orders", 0)
    (refused,) = shop.quarantined("raw.orders")
    assert (refused["payload"], refused["offset"]) == (b"this is no JSON", 1)
    with pytest.raises(PipelineError, match=r"did you mean raw\.orders"):
        shop.quarantined("raw.oders")


def test_rows_of_raw_have_their_day_as_in_production(shop: PipelineTest) -> None:
    """ARC-4"""
    shop.given("sources.orders", [{"id": 1, "kafka_timestamp": NOON}])
    shop.run("raw.placed")
    shop.given("raw.placed", [{"id": 2, "timestamp": NOON}, {"id": 3}])
    days = {row["id"]: row["day"] for row in shop.rows("raw.placed")}
    assert days == {1: NOON.date(), 2: NOON.date(), 3: None}


def test_a_second_run_continues_after_the_first(shop: PipelineTest) -> None:
    shop.given("raw.orders", [{"id": 1, "price": 1.0, "ts": NOON}, {"id": 2, "price": 95.0}])
    shop.run("trusted.latest", "alerts")
    shop.given("raw.orders", [{"id": 1, "price": 91.0}])
    shop.run("trusted.latest", "alerts")
    kept = sorted(shop.rows("trusted.latest"), key=lambda row: row["id"])
    assert kept == [{"id": 1, "price": 91.0}, {"id": 2, "price": 95.0}]
    assert shop.rows("alerts") == [{"id": 2}, {"id": 1}]


def test_an_expectation_that_fails_a_flow_fails_its_test(shop: PipelineTest) -> None:
    shop.given("raw.orders", [{"id": 1, "price": -1.0}])
    with pytest.raises(ExpectationFailed, match="'paid'"):
        shop.run("trusted.sane")
    assert shop.rows("trusted.sane") == []


def test_rows_that_fit_no_input_are_rejected_with_the_valid_inputs(shop: PipelineTest) -> None:
    with pytest.raises(
        PipelineError, match=r"raw\.orders has no column prize; .*did you mean price"
    ):
        shop.given("raw.orders", [{"prize": 1.0}])
    with pytest.raises(PipelineError, match=r"do not fit raw\.orders"):
        shop.given("raw.orders", [{"price": "cheap"}])
    with pytest.raises(PipelineError, match=r"did you mean raw\.orders"):
        shop.given("raw.oders", [])
    with pytest.raises(PipelineError, match="keeps no rows of its own"):
        shop.given("alerts", [])
    with pytest.raises(PipelineError, match=r"did you mean trusted\.sane"):
        shop.run("trusted.san")
