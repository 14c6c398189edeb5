"""DescribeConfigs v1-4: the configs of a resource, and the source of each value.

v1 adds sources and synonyms, v3 types and documentation. Sensitive values are never included.
"""

from collections.abc import Iterable

from headrace.broker.api.configs.altering import check_is_this_node
from headrace.broker.api.registry import Call, api
from headrace.broker.configs import loggers
from headrace.broker.topics.topology import why_missing
from headrace.controller.configs import CONFIG_RESOURCES
from headrace.errors import InvalidRequest, KafkaError
from headrace.metadata.image import ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.refusals import refused
from headrace.protocol.schemas.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from headrace.security import acls
from headrace.security.acls import Operation
from headrace.security.rights import for_each
from headrace.settings.definitions import ConfigSource
from headrace.settings.describe import (
    DescribedConfig,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
)

_RIGHTS = (
    for_each(Operation.DESCRIBE_CONFIGS, acls.ResourceType.TOPIC, "topics"),
    for_each(Operation.DESCRIBE_CONFIGS, acls.ResourceType.GROUP, "groups"),
    for_each(Operation.DESCRIBE_CONFIGS, acls.ResourceType.CLUSTER, "everything else"),
)


@api(ApiKey.DESCRIBE_CONFIGS, versions=range(1, 5), rights=_RIGHTS)
def describe_configs(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    known = {int(kind) for kind in ResourceType}
    if any(one.resource_type not in known for one in request.resources):
        raise InvalidRequest(f"a resource has a type without configs; {CONFIG_RESOURCES}")
    return DescribeConfigsResponse(
        results=[_describe(one, request, call) for one in request.resources]
    )


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, call: Call
) -> DescribeConfigsResult:
    try:
        _check_right(resource, call)
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            configs = _loggers(resource.resource_name, call)
        elif resource.resource_type == ResourceType.BROKER and resource.resource_name:
            configs = _this_broker(resource.resource_name, request, call)
        else:
            configs = [
                _entry(config, request)
                for config in _configs_of(resource.resource_type, resource.resource_name, call)
            ]
    except KafkaError as error:
        return refused(DescribeConfigsResult, resource, error)
    wanted = frozenset(resource.configuration_keys or ())
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[one for one in configs if not wanted or one.name in wanted],
    )


def _check_right(resource: DescribeConfigsResource, call: Call) -> None:
    access, wanted = call.access, Operation.DESCRIBE_CONFIGS
    match resource.resource_type:
        case ResourceType.TOPIC:
            access.check(wanted, acls.ResourceType.TOPIC, resource.resource_name)
        case ResourceType.GROUP:
            access.check(wanted, acls.ResourceType.GROUP, resource.resource_name)
        case _:
            access.check_on_cluster(wanted)


def _configs_of(kind: int, name: str, call: Call) -> Iterable[DescribedConfig]:
    image = call.broker.image
    layers = call.broker.configs.layers(image)
    match kind:
        case ResourceType.TOPIC:
            if name not in image.topics:
                raise why_missing(name)
            return describe_topic(image.configs_of(kind, name), layers)
        case ResourceType.BROKER:
            return describe_cluster_default(layers)
        case ResourceType.CLIENT_METRICS:
            _check_named(name, "a client metrics subscription")
            return describe_client_metrics(image.configs_of(kind, name))
        case _:
            _check_named(name, "a group")
            return describe_group(image.configs_of(kind, name), layers)


def _this_broker(
    name: str, request: DescribeConfigsRequest, call: Call
) -> list[DescribeConfigsResourceResult]:
    check_is_this_node(name, call.broker.node_id)
    layers = call.broker.configs.layers(call.broker.image)
    return call.broker.configs.described_broker.entries(
        layers,
        (request.include_synonyms, request.include_documentation),
        lambda: [_entry(config, request) for config in describe_broker(layers)],
    )


def _loggers(name: str, call: Call) -> list[DescribeConfigsResourceResult]:
    _check_named(name, "a broker")
    check_is_this_node(name, call.broker.node_id)
    return [
        DescribeConfigsResourceResult(
            name=logger,
            value=level,
            config_source=ConfigSource.DYNAMIC_BROKER_LOGGER,
            documentation="",  # Kafka has none, and sends an empty text.
        )
        for logger, level in loggers.levels().items()
    ]


def _check_named(name: str, what: str) -> None:
    if not name:
        raise InvalidRequest(f"{what} must be named")


def _entry(
    config: DescribedConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    definition = config.definition
    synonyms = config.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_sensitive=definition.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in synonyms
        ],
        config_type=definition.type,
        documentation=(definition.documentation or None) if request.include_documentation else None,
    )
