"""The pytest plugin: a running broker as a fixture, and pipelines over rows that a test gives.

    def test_orders_arrive(headrace_broker):
        producer = Producer({"bootstrap.servers": headrace_broker.bootstrap_servers})

    def test_an_order_counts_once(headrace_pipeline):
        headrace_pipeline.given("staging.orders", [{"id": 1}, {"id": 1}])

`@pytest.mark.headrace(settings={"num.partitions": 3})` on a test, class or module changes the
broker's settings. Everything beyond pytest is imported when a fixture is first used, because
pytest loads this module in every project of an environment that Headrace is installed in.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipelines.testing.pipeline_test import PipelineTest
    from headrace.testing.process import BrokerProcess

_MARKER = "headrace(settings): settings of this test's `headrace_broker`, under Kafka's names."


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def headrace_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[BrokerProcess]":
    """A broker of this test's own, empty at the start, gone at the end."""
    from headrace.testing.process import BrokerProcess

    with BrokerProcess(tmp_path_factory.mktemp("headrace"), _settings(request.node)) as broker:
        yield broker


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that nothing heeds would let a test pass or fail by settings it does not have."""
    names = getattr(item, "fixturenames", ())
    is_shared_only = "headrace_broker_session" in names and "headrace_broker" not in names
    if is_shared_only and item.get_closest_marker("headrace") is not None:
        raise pytest.UsageError(
            f"{item.name}: the settings of @pytest.mark.headrace do not count for"
            " headrace_broker_session, which many tests share; use headrace_broker"
        )


@pytest.fixture(scope="session")
def headrace_broker_session(
    tmp_path_factory: pytest.TempPathFactory,
) -> "Iterator[BrokerProcess]":
    """One broker for all tests that ask for it; they share its topics."""
    from headrace.testing.process import BrokerProcess

    with BrokerProcess(tmp_path_factory.mktemp("headrace")) as broker:
        yield broker


@pytest.fixture(scope="session")
def headrace_spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """One local Spark session for all tests: starting it takes longer than most of them."""
    from headrace.spark.session import open_session

    place = tmp_path_factory.mktemp("headrace-spark")
    session = open_session(
        "headrace-tests",
        "local[2]",
        {"spark.sql.warehouse.dir": str(place / "warehouse"), "spark.local.dir": str(place)},
    )
    yield session
    session.stop()


@pytest.fixture
def headrace_pipeline(
    request: pytest.FixtureRequest, headrace_spark: "SparkSession", tmp_path: Path
) -> "PipelineTest":
    """The pipeline whose folder the test file is in, with empty tables of the test's own."""
    from headrace.pipelines.testing.pipeline_test import PipelineTest, folder_of

    return PipelineTest(folder_of(request.path), headrace_spark, tmp_path)


def _settings(item: pytest.Item) -> dict[str, Any]:
    """The settings of every marker on the way in; the innermost wins."""
    settings: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("headrace"))):
        if marker.args or set(marker.kwargs) != {"settings"}:
            raise pytest.UsageError(
                'write the marker as @pytest.mark.headrace(settings={"num.partitions": 3})'
            )
        settings |= marker.kwargs["settings"]
    return settings
