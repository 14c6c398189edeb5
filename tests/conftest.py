"""Set-up that all tests share: how long hypothesis searches, and logs of nodes that failed."""

import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.kafka_release import KafkaMissing, KafkaRelease, find_kafka

if TYPE_CHECKING:
    from tests.nodes import Node

NODES: pytest.StashKey[list["Node"]] = pytest.StashKey()

# The shared machines of continuous integration are slow at times, so no example has a deadline, and
# there are not many: every run has others, and "thorough" is for whoever wants to search.
settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# What a shell runs behind ignores Ctrl-C, and so would every program that a test sends it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def heeds_hangups() -> Iterator[None]:
    """As in a terminal, also where `nohup` runs the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="session")
def kafka_release(tmp_path_factory: pytest.TempPathFactory) -> KafkaRelease:
    """Apache Kafka, or a skip that says what is missing."""
    from tests.kafka_classes import keep_classes

    try:
        release = find_kafka()
    except KafkaMissing as error:
        pytest.skip(str(error))
    keep_classes(release, tmp_path_factory.mktemp("classes"))
    return release


def watch(request: pytest.FixtureRequest, node: "Node") -> None:
    """Show this node's log when the test fails."""
    request.node.stash.setdefault(NODES, []).append(node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for node in item.stash.get(NODES, []):
            report.sections.append((f"log of {node.directory.name}", node.log[-8000:]))
    return report
