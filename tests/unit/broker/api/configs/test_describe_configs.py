"""DescribeConfigs and ListConfigResources: values, their sources, and hidden values."""

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import (
    InvalidRequest,
    InvalidTopicException,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from headrace.metadata.image import ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from headrace.protocol.schemas.list_config_resources import ListConfigResourcesRequest
from headrace.settings.broker_loading import load
from tests.unit.broker.api.builders import (
    UnitBroker,
    a_broker,
    a_topic,
    ask,
    image_with,
    with_configs,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
OWN, DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5


@pytest.fixture
def broker(tmp_path: Path) -> UnitBroker:
    broker = a_broker(tmp_path)
    image = with_configs(image_with(a_topic("t")), TOPIC, "t", retention_ms="1234")
    image = with_configs(image, BROKER, "", log_cleaner_backoff_ms="1")
    image = with_configs(image, BROKER, "1", log_cleaner_backoff_ms="2")
    broker.controller.image = with_configs(image, CLIENT_METRICS, "sub", metrics="a.b")
    return broker


async def describe(
    broker: UnitBroker,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    version: int = 4,
    **fields: Any,
) -> DescribeConfigsResponse:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource], **fields)
    response = await ask(broker, ApiKey.DESCRIBE_CONFIGS, request, version)
    assert isinstance(response, DescribeConfigsResponse)
    return response


async def configs(
    broker: UnitBroker, kind: int, name: str, **fields: Any
) -> dict[str, DescribeConfigsResourceResult]:
    response = await describe(broker, kind, name, **fields)
    assert response.results[0].error_code == 0
    return {config.name: config for config in response.results[0].configs}


@pytest.mark.parametrize("version", range(1, 5))
async def test_every_version_has_values_and_sources(broker: UnitBroker, version: int) -> None:
    answer = await configs(broker, TOPIC, "t", version=version)
    assert (answer["retention.ms"].value, answer["retention.ms"].config_source) == ("1234", OWN)
    assert (answer["cleanup.policy"].value, answer["cleanup.policy"].config_source) == (
        "delete",
        DEFAULT,
    )
    assert answer["retention.ms"].config_type == (5 if version >= 3 else 0)
    assert "internal.segment.bytes" not in answer


async def test_synonyms_and_documentation_are_included_on_request(broker: UnitBroker) -> None:
    asked = await configs(broker, TOPIC, "t", include_synonyms=True, include_documentation=True)
    silent = await configs(broker, TOPIC, "t")
    synonyms = [(one.name, one.value, one.source) for one in asked["max.message.bytes"].synonyms]
    assert synonyms == [("message.max.bytes", "1048588", DEFAULT)]
    assert asked["retention.ms"].synonyms[0].source == OWN
    assert asked["retention.ms"].documentation
    assert silent["retention.ms"].synonyms == []
    assert silent["retention.ms"].documentation is None


async def test_only_requested_keys_are_described(broker: UnitBroker) -> None:
    assert (await configs(broker, TOPIC, "t", keys=["retention.ms", "nope"])).keys() == {
        "retention.ms"
    }
    assert len(await configs(broker, TOPIC, "t", keys=[])) > 20


async def test_a_brokers_own_layers_are_laid_over_each_other(broker: UnitBroker) -> None:
    answer = await configs(broker, BROKER, "1", include_synonyms=True)
    threads = answer["log.cleaner.backoff.ms"]
    assert (threads.value, threads.config_source, threads.read_only) == ("2", DYNAMIC, False)
    assert [one.source for one in threads.synonyms] == [DYNAMIC, DYNAMIC_DEFAULT, DEFAULT]
    assert answer["node.id"].read_only


async def test_a_changed_broker_config_is_described_at_once(broker: UnitBroker) -> None:
    """The cached configs of the broker follow the change."""
    await configs(broker, BROKER, "1")
    image = broker.controller.image
    broker.controller.image = with_configs(image, BROKER, "1", log_cleaner_backoff_ms="3")
    assert (await configs(broker, BROKER, "1"))["log.cleaner.backoff.ms"].value == "3"


async def test_configs_of_the_properties_file_are_static(tmp_path: Path) -> None:
    settings, _ = load({"node.id": "1", "log.segment.bytes": "2097152"})
    broker = UnitBroker(tmp_path, settings, image_with(a_topic("t")))
    answer = (await configs(broker, BROKER, "1"))["log.segment.bytes"]
    inherited = (await configs(broker, TOPIC, "t"))["segment.bytes"]
    assert (answer.value, answer.config_source) == ("2097152", STATIC)
    assert (inherited.value, inherited.config_source) == ("2097152", STATIC)


async def test_the_cluster_default_has_only_configs_that_were_set(broker: UnitBroker) -> None:
    answer = await configs(broker, BROKER, "")
    assert {name: config.value for name, config in answer.items()} == {
        "log.cleaner.backoff.ms": "1"
    }


async def test_client_metrics_have_configs(broker: UnitBroker) -> None:
    answer = await configs(broker, CLIENT_METRICS, "sub")
    assert (answer["metrics"].value, answer["metrics"].config_source) == ("a.b", 7)


async def test_loggers_have_their_levels(broker: UnitBroker) -> None:
    answer = await configs(broker, LOGGER, "1")
    assert answer["root"].config_source == 6
    assert answer["root"].value in {"DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"}
    assert all(name == "root" or name.startswith("headrace") for name in answer)


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "nope", UnknownTopicOrPartition),
        (TOPIC, "", InvalidTopicException),
        (TOPIC, "a b", InvalidTopicException),
        (BROKER, "9", InvalidRequest),
        (BROKER, "x", InvalidRequest),
        (BROKER, "-1", InvalidRequest),
        (LOGGER, "", InvalidRequest),
        (LOGGER, "9", InvalidRequest),
        (CLIENT_METRICS, "", InvalidRequest),
        (GROUP, "", InvalidRequest),
        (3, "x", InvalidRequest),
    ],
)
async def test_invalid_resources_have_an_error_and_a_message(
    broker: UnitBroker, kind: int, name: str, error: type[InvalidRequest]
) -> None:
    result = (await describe(broker, kind, name)).results[0]
    assert (result.error_code, result.configs) == (error.code, [])
    assert result.error_message
    assert (result.resource_type, result.resource_name) == (kind, name)


async def test_one_bad_resource_spoils_no_other(broker: UnitBroker) -> None:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=TOPIC, resource_name="nope"),
            DescribeConfigsResource(resource_type=TOPIC, resource_name="t"),
        ]
    )
    response = await ask(broker, ApiKey.DESCRIBE_CONFIGS, request)
    assert [result.error_code for result in response.results] == [UnknownTopicOrPartition.code, 0]


class TestListConfigResources:
    async def names(
        self, broker: UnitBroker, *kinds: int, version: int = 1
    ) -> list[tuple[int, str]]:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        response = await ask(broker, ApiKey.LIST_CONFIG_RESOURCES, request, version)
        assert response.error_code == 0
        return [(one.resource_type, one.resource_name) for one in response.config_resources]

    async def test_resources_are_listed_by_type(self, broker: UnitBroker) -> None:
        assert await self.names(broker) == [
            (TOPIC, "t"),
            (BROKER, "1"),
            (LOGGER, "1"),
            (CLIENT_METRICS, "sub"),
        ]
        assert await self.names(broker, TOPIC, TOPIC) == [(TOPIC, "t")]
        assert await self.names(broker, GROUP) == []

    async def test_version_0_lists_client_metrics_only(self, broker: UnitBroker) -> None:
        assert await self.names(broker, version=0) == [(ResourceType.CLIENT_METRICS, "sub")]

    @pytest.mark.parametrize("kind", [0, 1, 99])
    async def test_an_unknown_kind_is_unsupported(self, broker: UnitBroker, kind: int) -> None:
        request = ListConfigResourcesRequest(resource_types=[kind])
        response = await ask(broker, ApiKey.LIST_CONFIG_RESOURCES, request)
        assert response.error_code == UnsupportedVersion.code
