"""The pytest plugin: a running broker as a fixture, and pipelines over rows given by a test.

    def test_orders_arrive(headrace_broker):
        producer = Producer({"bootstrap.servers": headrace_broker.bootstrap_servers})

    def test_an_order_survives_its_leader(headrace_cluster):
        headrace_cluster.leader_of("orders").kill()

    def test_an_order_counts_once(headrace_pipeline):
        headrace_pipeline.given("staging.orders", [{"id": 1}, {"id": 1}])

`@pytest.mark.headrace(settings={"num.partitions": 3})` on a test, class or module changes the
broker's settings; `secure=True` starts it with TLS, logins and access rules. Everything beyond
pytest is imported when a fixture is first used, because pytest loads this module in every project
of an environment that contains Headrace.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipelines.testing.pipeline_test import PipelineTest
    from headrace.testing.cluster import ClusterProcess
    from headrace.testing.process import BrokerProcess

_MARKER = (
    "headrace(settings, secure): settings of this test's `headrace_broker` or `headrace_cluster`,"
    " under Kafka's names; secure=True starts it with TLS, logins and access rules."
)
_WITH_SETTINGS = ("headrace_broker", "headrace_cluster")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def headrace_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[BrokerProcess]":
    """A broker for one test: empty at the start, removed at the end."""
    from headrace.testing.process import BrokerProcess

    settings, secure = _options(request.node)
    place = tmp_path_factory.mktemp("headrace")
    with BrokerProcess(place, settings, secure=secure) as broker:
        yield broker


@pytest.fixture
def headrace_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[ClusterProcess]":
    """A cluster of three nodes for one test: empty at the start, removed at the end."""
    from headrace.testing.cluster import ClusterProcess

    settings, secure = _options(request.node)
    place = tmp_path_factory.mktemp("headrace")
    with ClusterProcess(place, settings, secure=secure) as cluster:
        yield cluster


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Reject an ignored marker: the test would run without the settings it names."""
    names = getattr(item, "fixturenames", ())
    has_settings = any(name in names for name in _WITH_SETTINGS)
    is_shared_only = "headrace_broker_session" in names and not has_settings
    if is_shared_only and item.get_closest_marker("headrace") is not None:
        raise pytest.UsageError(
            f"{item.name}: the settings of @pytest.mark.headrace do not apply to"
            " headrace_broker_session, which many tests share; use headrace_broker"
        )


@pytest.fixture(scope="session")
def headrace_broker_session(
    tmp_path_factory: pytest.TempPathFactory,
) -> "Iterator[BrokerProcess]":
    """One broker shared by all tests that use this fixture, with its topics."""
    from headrace.testing.process import BrokerProcess

    with BrokerProcess(tmp_path_factory.mktemp("headrace")) as broker:
        yield broker


@pytest.fixture(scope="session")
def headrace_spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """One local Spark session shared by all tests: its start takes longer than most of them."""
    _require_spark()
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
    """The pipeline of the test file's folder, with empty tables for this test."""
    from headrace.pipelines.testing.pipeline_test import PipelineTest, folder_of

    return PipelineTest(folder_of(request.path), headrace_spark, tmp_path)


def _require_spark() -> None:
    """Fail with advice if PySpark or Java is missing, instead of a traceback."""
    if find_spec("pyspark") is None:
        from headrace.runtime.installation import pip_command

        pytest.fail(
            "headrace_spark and headrace_pipeline need Spark; install it with:"
            f" {pip_command('spark')}",
            pytrace=False,
        )
    from headrace.spark.java import JavaMissing, find_java

    reason = ""
    try:
        find_java()
    except JavaMissing as error:
        reason = str(error)
    if reason:  # Outside the handler: pytest would show its exception as well.
        pytest.fail(reason, pytrace=False)


def _options(item: pytest.Item) -> tuple[dict[str, Any], bool]:
    """Merge the settings of all markers, and return whether to secure the nodes.

    The innermost marker wins.
    """
    settings: dict[str, Any] = {}
    secure = False
    for marker in reversed(list(item.iter_markers("headrace"))):
        if marker.args or not marker.kwargs or not set(marker.kwargs) <= {"settings", "secure"}:
            raise pytest.UsageError(
                'write the marker as @pytest.mark.headrace(settings={"num.partitions": 3}) or'
                " @pytest.mark.headrace(secure=True)"
            )
        settings |= marker.kwargs.get("settings", {})
        secure = marker.kwargs.get("secure", secure)
    if secure and find_spec("cryptography") is None:
        from headrace.runtime.installation import pip_command

        pytest.fail(
            f"secure=True needs cryptography; install it with: {pip_command('security')}",
            pytrace=False,
        )
    return settings, secure
