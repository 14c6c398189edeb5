"""The settings of sessions, and the sessions with a fork server."""

import sys
from functools import cache

import pytest

from headrace.spark.session import PYTHON, SETTINGS, _server_for, is_secret


@pytest.mark.parametrize(
    "name",
    [
        *("kafka.sasl.password", "kafka.sasl.jaas.config", "kafka.sasl.oauthbearer.token"),
        *("kafka.sasl.oauthbearer.client.secret", "kafka.ssl.key.password", "kafka.ssl.key.pem"),
        *("kafka.ssl.keystore.key", "schema.registry.basic.auth.user.info"),
        *("spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key"),
        *("spark.hadoop.fs.azure.account.key.lake", "spark.ssl.keyStorePassword"),
        *("spark.hadoop.fs.gs.auth.service.account.private.key", "spark.authenticate.secret"),
    ],
)
def test_passwords_of_kafka_registries_and_stores_are_secret(name: str) -> None:
    assert is_secret(name)


def test_settings_of_every_session_are_not_secret() -> None:
    assert [name for name in SETTINGS if is_secret(name)] == []


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> object:
    """The fork server of a Linux process that has neither it nor a JVM yet."""
    made = object()
    monkeypatch.setattr("headrace.spark.launching.fork_server.fork_server", cache(lambda: made))
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return made


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({}, ""),
        ({PYTHON: sys.executable}, ""),
        ({PYTHON: "/other/python3"}, sys.executable),
        ({"spark.executor.memory": "1g"}, ""),
    ],
)
def test_a_session_that_runs_the_python_of_its_driver_has_it_forked(
    settings: dict[str, str], environment: str, server: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty variable is ignored, as by Spark; a set one has precedence over the setting."""
    monkeypatch.setenv("PYSPARK_PYTHON", environment)
    assert _server_for(settings) is server


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({PYTHON: "/other/python3"}, ""),
        ({}, "/other/python3"),
        ({"spark.executorEnv.MALLOC_ARENA_MAX": "2"}, ""),
    ],
)
@pytest.mark.usefixtures("server")
def test_another_python_or_environment_is_not_forked(
    settings: dict[str, str], environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", environment)
    assert _server_for(settings) is None


@pytest.mark.parametrize(("name", "value"), [("platform", "darwin"), ("executable", "")])
@pytest.mark.usefixtures("server")
def test_forks_need_linux_and_the_path_of_python(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, name, value)
    assert _server_for({}) is None


def test_a_jvm_started_without_a_fork_server_gets_none(
    server: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts the program that was configured at its launch."""
    monkeypatch.setattr("pyspark.SparkContext._gateway", object())
    assert _server_for({}) is None
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    assert _server_for({}) is server
    monkeypatch.setattr("pyspark.SparkContext._gateway", object())
    assert _server_for({}) is server
