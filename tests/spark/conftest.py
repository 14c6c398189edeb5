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
from headrace.spark import class_archive
from headrace.spark.home import own_home
from headrace.testing.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark_cluster import Cluster

MakeTopic = Callable[..., str]

FOLDER = Path(__file__).parent

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What runs for minutes, over few rows, gains nothing by the better compiler and by threads that
collect: tests take a third less of a processor without."""
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Code that is made for a query and compiled costs more than it saves where rows are few: without,
the shared session takes a fifth less of a processor. Other sessions of tests are as a user's."""
CLUSTERS = {"test_cluster.py", "test_pipeline_cluster.py"}
"""Files whose tests share the clusters."""
KILLS = {"test_pipeline_kills.py", "test_sink_kills.py"}
"""Files whose tests kill drivers that they have started."""
PROCESSES = {
    *("test_make_run.py", "test_secrets.py", "test_sink_epochs.py", "test_sink_on_kafka.py"),
    *("test_stock_connector.py", "test_template_tests.py"),
}
"""Files whose tests do without the shared session; most start JVMs of their own, and wait."""
APART = {"clusters": CLUSTERS, "kills": KILLS, "processes": PROCESSES}
"""Files that come first, by what one process runs together."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n 3` three processes have enough for two cores: much of Spark's work is waiting.

    They begin with what is apart, and take the rest file by file, each with one session that all
    its tests share.
    """
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = share_of
    return scheduler


def share_of(nodeid: str) -> str:
    """Which tests one process runs together."""
    path = Path(nodeid.partition("::")[0])
    if path.parent.name != FOLDER.name:
        return str(path)
    return next((name for name, files in APART.items() if path.name in files), path.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is apart comes first, and then the files with most tests: they cannot be split."""
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
    """Let every JVM that a test starts begin its work soon; one that is told otherwise obeys."""
    with pytest.MonkeyPatch.context() as patch:
        if "JAVA_TOOL_OPTIONS" not in os.environ:
            patch.setenv("JAVA_TOOL_OPTIONS", f"{JAVA_OPTIONS} {kept_classes()}")
        yield


def kept_classes() -> str:
    """What lets all JVMs of Spark, executors included, begin with what `make spark` has kept."""
    home = own_home()
    return "" if home is None or which("java") is None else class_archive.java_options(home)


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
    from tests.spark_cluster import python_without_headrace

    return python_without_headrace(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Cluster"]:
    """A standalone cluster of two workers, which all tests share that need one."""
    from tests.spark_cluster import standalone_cluster

    with standalone_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as started:
        yield started


@pytest.fixture(scope="session")
def connect_address(tmp_path_factory: pytest.TempPathFactory, plain_python: Path) -> Iterator[str]:
    """A Spark Connect server whose Python does not have headrace, shared likewise."""
    from tests.spark_cluster import connect_server

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
