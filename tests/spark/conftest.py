"""One Spark session for all tests of a process, warmed once, and a broker beside it."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from headrace.client.admin import Admin
from headrace.client.descriptions import NewTopic
from headrace.spark.launching.class_archive import java_options as archive_options
from headrace.testing.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.processes.spark_clusters import Cluster

MakeTopic = Callable[..., str]

FOLDER = Path(__file__).parent

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Short runs over few rows gain nothing from the second compiler and parallel collection. Without
them, tests use a third less processor time."""
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For few rows, code generation costs more than it saves. Without it, the shared session uses a
fifth less processor time. Other sessions of tests have a user's settings."""
CLUSTERS = {"test_cluster.py", "test_pipeline_cluster.py"}
"""Files whose tests share the clusters."""
KILLS = {"test_pipeline_kills.py", "test_sink_kills.py"}
"""Files whose tests kill drivers that they have started."""
PROCESSES = {
    *("test_make_run.py", "test_secrets.py", "test_sink_epochs.py", "test_sink_on_kafka.py"),
    *("test_stock_connector.py", "test_template_tests.py"),
}
"""Files whose tests do not use the shared session; most start JVMs of their own, and wait."""
APART = {"clusters": CLUSTERS, "kills": KILLS, "processes": PROCESSES}
"""The files that run first; one process runs each group."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute tests by groups and files; each file has one session that all its tests share.

    Separate groups run first. Three processes (`-n 3`) fill two cores, since Spark waits often.
    """
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = share_of
    return scheduler


def share_of(nodeid: str) -> str:
    """Return the group of tests that one process runs together."""
    path = Path(nodeid.partition("::")[0])
    if path.parent.name != FOLDER.name:
        return str(path)
    return next((name for name, files in APART.items() if path.name in files), path.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order separate tests first, then the files with most tests, which cannot be split."""
    sizes = Counter(item.path for item in items)
    for item in items:
        needs = getattr(item, "fixturenames", ())
        if is_apart(item) and "spark" in needs:
            raise pytest.UsageError(f"{item.nodeid} uses the session, but its file is APART")
    items.sort(key=lambda item: (is_apart(item), sizes[item.path]), reverse=True)


def is_apart(item: pytest.Item) -> bool:
    return share_of(item.nodeid) in APART


@pytest.fixture(scope="session", autouse=True)
def java_options() -> Iterator[None]:
    """Let every JVM of a test start fast, unless it is configured otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        if "JAVA_TOOL_OPTIONS" not in os.environ:
            # All JVMs of Spark, executors included, use the classes that `make spark` has kept.
            patch.setenv("JAVA_TOOL_OPTIONS", f"{JAVA_OPTIONS} {archive_options()}")
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A classic local session: starting one takes many seconds, so there is one."""
    if which("java") is None:
        pytest.skip("Spark needs a Java runtime, such as Debian's openjdk-17-jre-headless")
    from headrace.spark.session import open_session

    place = tmp_path_factory.mktemp("spark")
    session = open_session(
        "tests",
        "local[2]",
        {
            "spark.driver.memory": "2g",
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            "spark.local.dir": str(place / "local"),
            **INTERPRETED,
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def plain_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has every package but headrace."""
    from tests.processes.spark_clusters import python_without_headrace

    return python_without_headrace(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Cluster"]:
    """A standalone cluster of two workers, shared by tests."""
    from tests.processes.spark_clusters import standalone_cluster

    with standalone_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as started:
        yield started


@pytest.fixture(scope="session")
def connect_address(tmp_path_factory: pytest.TempPathFactory, plain_python: Path) -> Iterator[str]:
    """A Spark Connect server whose Python does not have headrace, shared by tests."""
    from tests.processes.spark_clusters import connect_server

    with connect_server(tmp_path_factory.mktemp("server"), plain_python) as address:
        yield address


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that is shared: tests use topics of their own and leave it running."""
    with BrokerProcess(
        tmp_path_factory.mktemp("broker"), {"group.initial.rebalance.delay.ms": 0}
    ) as started:
        yield started


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for one test, which may stop, kill and restart it."""
    with BrokerProcess(tmp_path / "broker", {"group.initial.rebalance.delay.ms": 0}) as started:
        yield started


@pytest.fixture
def make_topic(broker: BrokerProcess) -> MakeTopic:
    """Create a topic with a name of its own: `make_topic(partitions=3)`."""

    def make(name: str = "topic", partitions: int = 1, **configs: str) -> str:
        topic = f"{name}-{uuid4().hex[:8]}"
        given = {key.replace("_", "."): value for key, value in configs.items()}
        with Admin(broker.bootstrap_servers) as admin:
            admin.topics.create([NewTopic(name=topic, partitions=partitions, configs=given)])
        return topic

    return make
