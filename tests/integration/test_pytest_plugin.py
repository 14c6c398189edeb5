"""The pytest plugin as a user's project sees it, and the process behind its fixture."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.testing.process import BrokerFailed, BrokerProcess

pytest_plugins = ["pytester"]

MODULE = "headrace.testing.plugin"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project that has the plugin, and no other that may be installed here."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def run(project: pytest.Pytester, source: str) -> pytest.RunResult:
    project.makepyfile(textwrap.dedent(source))
    return project.runpytest_subprocess("-q", "--strict-markers", "-p", MODULE)


def produce(broker: BrokerProcess, value: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("greetings", value)
    assert producer.flush(20) == 0


def consume(broker: BrokerProcess, count: int) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition("greetings", 0, 0)])
    messages = consumer.consume(count, timeout=20)
    consumer.close()
    return [bytes(message.value() or b"").decode() for message in messages]


def test_a_test_gets_a_broker_with_its_settings(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest
        from confluent_kafka.admin import AdminClient, ConfigResource

        pytestmark = pytest.mark.headrace(settings={"num.partitions": 2, "node.id": 7})

        @pytest.mark.headrace(settings={"num.partitions": 3, "auto.create.topics.enable": False})
        def test_settings(headrace_broker):
            assert headrace_broker.data_dir.is_dir()
            admin = AdminClient({"bootstrap.servers": headrace_broker.bootstrap_servers})
            resource = ConfigResource("broker", "7")
            configs = admin.describe_configs([resource])[resource].result(20)
            assert configs["num.partitions"].value == "3"
            assert configs["auto.create.topics.enable"].value == "false"
        """,
    )
    result.assert_outcomes(passed=1)


def test_tests_of_a_session_may_share_a_broker(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        seen = []

        def test_one(headrace_broker_session):
            seen.append(headrace_broker_session.pid)

        def test_two(headrace_broker_session):
            assert seen == [headrace_broker_session.pid]
        """,
    )
    result.assert_outcomes(passed=2)


def test_an_invalid_marker_is_reported_with_its_usage(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest

        @pytest.mark.headrace(partitions=3)
        def test_settings(headrace_broker):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pytest.mark.headrace(settings=*"])


def test_a_misspelt_setting_is_reported_with_the_nearest_name(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest

        @pytest.mark.headrace(settings={"num.partition": 3})
        def test_settings(headrace_broker):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*Did you mean num.partitions?*"])


def test_records_survive_a_restart_and_a_crash(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        address = broker.bootstrap_servers
        produce(broker, "before the restart")
        broker.restart()
        produce(broker, "before the crash")
        broker.kill()
        assert not broker.is_running
        broker.start()
        assert broker.bootstrap_servers == address
        assert consume(broker, 2) == ["before the restart", "before the crash"]


def test_a_broker_that_cannot_start_reports_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BrokerFailed, match="must be at least 1, not 0"):
        BrokerProcess(tmp_path, {"num.partitions": 0}).start()


def test_stopping_twice_is_fine(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        broker.stop()
        broker.stop()
        broker.kill()


def test_the_plugin_imports_nothing_in_a_project_without_brokers() -> None:
    """The plugin is loaded by every pytest run in an environment that has Headrace."""
    program = f"""
import sys, pytest
before = set(sys.modules)
import {MODULE}
print(sorted(set(sys.modules) - before))
"""
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert loaded.strip() == "['headrace', 'headrace.testing', 'headrace.testing.plugin']"


def test_settings_for_the_shared_broker_are_refused(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
        import pytest

        @pytest.mark.headrace(settings={"num.partitions": 2})
        def test_settings(headrace_broker_session):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*do not apply to headrace_broker_session*"])
