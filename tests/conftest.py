"""Set-up for all tests: hypothesis profiles, known flaky tests, and logs of failed nodes."""

import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.flaky import flaky_tests
from tests.processes.kafka import KafkaMissing, KafkaRelease, find_kafka

if TYPE_CHECKING:
    from tests.processes.nodes import Node

NODES: pytest.StashKey[list["Node"]] = pytest.StashKey()

# Machines of continuous integration are slow at times, so examples have no deadline. Every run
# tries other examples; the profile "thorough" searches longer.
settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell's background job ignores Ctrl-C, and the programs started by tests would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def heeds_hangups() -> Iterator[None]:
    """Restore the default reaction to SIGHUP where `nohup` runs the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="session")
def kafka_release(tmp_path_factory: pytest.TempPathFactory) -> KafkaRelease:
    """Apache Kafka, or a skip that names the missing part."""
    from tests.processes.kafka_class_archive import keep_classes

    try:
        release = find_kafka()
    except KafkaMissing as error:
        pytest.skip(str(error))
    keep_classes(release, tmp_path_factory.mktemp("classes"))
    return release


def watch(request: pytest.FixtureRequest, node: "Node") -> None:
    """Show this node's log if the test fails."""
    request.node.stash.setdefault(NODES, []).append(node)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Repeat a known flaky test once; every other test must pass at its first run."""
    known = {test.id for test in flaky_tests()}
    for item in items:
        if item.nodeid.partition("[")[0] in known:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for node in item.stash.get(NODES, []):
            report.sections.append((f"log of {node.directory.name}", node.log[-8000:]))
    return report
