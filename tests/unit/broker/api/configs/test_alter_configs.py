"""IncrementalAlterConfigs and AlterConfigs: what the broker settles and what it hands on."""

import logging
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from msgspec.structs import force_setattr

from headrace.errors import (
    ClusterAuthorizationFailed,
    InvalidConfig,
    InvalidRequest,
    InvalidTls,
    KafkaError,
    UnknownTopicOrPartition,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas import alter_configs, incremental_alter_configs
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType
from tests.builders.guarded_nodes import guarded_node
from tests.unit.broker.api.builders import UnitBroker, a_broker, a_topic, ask, image_with

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[str, int, str | None]


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path)
    broker.controller.image = image_with(a_topic("t"), a_topic("u"))
    return broker


def incremental(
    kind: int, name: str, *changes: Change
) -> incremental_alter_configs.AlterConfigsResource:
    return incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=config, config_operation=operation, value=value
            )
            for config, operation, value in changes
        ],
    )


async def change(
    broker: UnitBroker,
    *resources: incremental_alter_configs.AlterConfigsResource,
    validate_only: bool = False,
    version: int = 1,
) -> list[int]:
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=list(resources), validate_only=validate_only
    )
    response = await ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, request, version)
    answer = [(one.resource_type, one.resource_name) for one in response.responses]
    assert answer == [(one.resource_type, one.resource_name) for one in resources]
    return [one.error_code for one in response.responses]


def of_topic(broker: UnitBroker, name: str = "t") -> dict[str, str]:
    return dict(broker.image.configs_of(TOPIC, name))


@pytest.mark.parametrize("version", range(2))
async def test_configs_are_set_and_deleted(broker: UnitBroker, version: int) -> None:
    assert await change(
        broker, incremental(TOPIC, "t", ("retention.ms", SET, "5")), version=version
    ) == [0]
    assert of_topic(broker) == {"retention.ms": "5"}
    assert await change(broker, incremental(TOPIC, "t", ("retention.ms", DELETE, None))) == [0]
    assert of_topic(broker) == {}


async def test_lists_are_appended_to_and_subtracted_from(broker: UnitBroker) -> None:
    await change(broker, incremental(TOPIC, "t", ("cleanup.policy", APPEND, "compact")))
    assert of_topic(broker) == {"cleanup.policy": "delete,compact"}
    await change(broker, incremental(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")))
    assert of_topic(broker) == {"cleanup.policy": "compact"}


async def test_validate_only_changes_nothing(broker: UnitBroker) -> None:
    good = incremental(TOPIC, "t", ("retention.ms", SET, "5"))
    bad = incremental(TOPIC, "u", ("retention.ms", SET, "abc"))
    assert await change(broker, good, bad, validate_only=True) == [0, InvalidConfig.code]
    assert of_topic(broker) == {}


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (incremental(TOPIC, "nope", ("retention.ms", SET, "5")), UnknownTopicOrPartition),
        (incremental(TOPIC, "", ("retention.ms", SET, "5")), InvalidRequest),
        (incremental(TOPIC, "t", ("retention.ms", SET, None)), InvalidRequest),
        (incremental(TOPIC, "t", ("retention.ms", SET, "")), InvalidConfig),
        (incremental(TOPIC, "t", ("retention.ms", APPEND, "5")), InvalidConfig),
        (incremental(TOPIC, "t", ("nope", SET, "5")), InvalidConfig),
        (incremental(TOPIC, "t", ("a", SET, "1"), ("a", SET, "2")), InvalidRequest),
        (incremental(BROKER, "9", ("log.cleaner.backoff.ms", SET, "2")), InvalidRequest),
        (incremental(BROKER, "x", ("log.cleaner.backoff.ms", SET, "2")), InvalidRequest),
        (incremental(BROKER, "1", ("node.id", SET, "2")), InvalidRequest),
        (incremental(BROKER, "1", ("log.cleaner.backoff.ms", SET, "abc")), InvalidRequest),
        (incremental(CLIENT_METRICS, "", ("metrics", SET, "a")), InvalidRequest),
        (incremental(3, "x"), InvalidRequest),
    ],
)
async def test_a_rejected_change_has_an_error_and_spoils_no_other(
    broker: UnitBroker,
    resource: incremental_alter_configs.AlterConfigsResource,
    error: type[KafkaError],
) -> None:
    good = incremental(TOPIC, "u", ("retention.ms", SET, "5"))
    assert await change(broker, resource, good) == [error.code, 0]


async def test_a_resource_named_twice_is_refused_twice(broker: UnitBroker) -> None:
    resource = incremental(TOPIC, "t", ("retention.ms", SET, "5"))
    assert await change(broker, resource, resource) == [InvalidRequest.code] * 2


async def test_a_broker_and_all_brokers_have_configs(broker: UnitBroker) -> None:
    assert await change(
        broker,
        incremental(BROKER, "1", ("log.cleaner.backoff.ms", SET, "2")),
        incremental(BROKER, "", ("log.cleaner.backoff.ms", SET, "3")),
    ) == [0, 0]
    assert broker.image.configs_of(BROKER, "1") == {"log.cleaner.backoff.ms": "2"}
    assert broker.image.configs_of(BROKER, "") == {"log.cleaner.backoff.ms": "3"}


class TestLoggers:
    NAME = "headrace.unit_test_of_loggers"

    @pytest.fixture(autouse=True)
    def logger(self) -> Iterator[logging.Logger]:
        logger = logging.getLogger(self.NAME)
        yield logger
        logger.setLevel(logging.NOTSET)

    async def test_levels_are_set_at_once_and_not_stored(
        self, broker: UnitBroker, logger: logging.Logger
    ) -> None:
        assert await change(broker, incremental(LOGGER, "1", (self.NAME, SET, "WARN"))) == [0]
        assert logger.level == logging.WARNING
        assert broker.controller.decisions == 0
        assert await change(broker, incremental(LOGGER, "1", (self.NAME, DELETE, None))) == [0]
        assert logger.level == logging.NOTSET

    async def test_validate_only_leaves_the_level(
        self, broker: UnitBroker, logger: logging.Logger
    ) -> None:
        resource = incremental(LOGGER, "1", (self.NAME, SET, "WARN"))
        assert await change(broker, resource, validate_only=True) == [0]
        assert logger.level == logging.NOTSET

    @pytest.mark.parametrize(
        ("node", "changed", "error"),
        [
            ("1", (NAME, SET, "LOUD"), InvalidConfig),
            ("1", ("no.such.logger", SET, "INFO"), InvalidConfig),
            ("1", ("root", DELETE, None), InvalidRequest),
            ("1", (NAME, APPEND, "INFO"), InvalidRequest),
            ("1", (NAME, SET, None), InvalidRequest),
            ("9", (NAME, SET, "INFO"), InvalidRequest),
            ("", (NAME, SET, "INFO"), InvalidRequest),
        ],
    )
    async def test_bad_changes_are_refused(
        self, broker: UnitBroker, node: str, changed: Change, error: type[KafkaError]
    ) -> None:
        assert await change(broker, incremental(LOGGER, node, changed)) == [error.code]


class TestAlterConfigs:
    async def replace(
        self,
        broker: UnitBroker,
        kind: int,
        name: str,
        version: int = 2,
        **configs: str | None,
    ) -> int:
        resource = alter_configs.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        request = alter_configs.AlterConfigsRequest(resources=[resource])
        response = await ask(broker, ApiKey.ALTER_CONFIGS, request, version)
        code = response.responses[0].error_code
        assert isinstance(code, int)
        return code

    @pytest.mark.parametrize("version", range(3))
    async def test_configs_that_are_not_named_are_removed(
        self, broker: UnitBroker, version: int
    ) -> None:
        await change(broker, incremental(TOPIC, "t", ("retention.ms", SET, "5")))
        assert await self.replace(broker, TOPIC, "t", version, cleanup_policy="compact") == 0
        assert of_topic(broker) == {"cleanup.policy": "compact"}

    async def test_bad_changes_are_refused(self, broker: UnitBroker) -> None:
        nope = UnknownTopicOrPartition.code
        assert await self.replace(broker, TOPIC, "nope") == nope
        assert await self.replace(broker, TOPIC, "t", retention_ms=None) == InvalidRequest.code
        assert await self.replace(broker, TOPIC, "t", no_such="1") == InvalidConfig.code
        assert await self.replace(broker, LOGGER, "1", root="INFO") == InvalidRequest.code
        assert await self.replace(broker, 0, "x") == InvalidRequest.code


async def test_only_a_client_with_the_right_has_certificates_read(tmp_path: Path) -> None:
    """SEC-7: for others, the answer must not show which files the node has."""
    tls = Mock()
    tls.check.side_effect = InvalidTls("ssl.keystore.location: /etc/shadow cannot be read")
    place = incremental(
        BROKER, "1", ("listener.name.ssl.ssl.keystore.location", SET, "/etc/shadow")
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([place], validate_only=True)
    async with guarded_node(tmp_path) as node:
        force_setattr(node.broker, "tls", tls)
        refused = await node.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
        assert refused.responses[0].error_code == ClusterAuthorizationFailed.code
        assert "/etc/shadow" not in (refused.responses[0].error_message or "")
        tls.check.assert_not_called()
        node.grant((Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME))
        checked = await node.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
        assert checked.responses[0].error_code == InvalidRequest.code
        force_setattr(node.broker, "tls", None)
