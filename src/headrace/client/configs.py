"""Settings of topics and brokers by the wire: what is in force and why, and changes to it."""

from collections.abc import Sequence

from headrace.client.cluster import ANY_NODE, Cluster, NoSuchTopic, error_name
from headrace.client.descriptions import (
    CONFIG_OPERATIONS,
    CONFIG_SOURCES,
    CONFIG_TYPES,
    RESOURCE_TYPES,
    ConfigChange,
    ConfigEntry,
    ConfigSynonym,
    Outcome,
)
from headrace.errors import (
    HeadraceError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    error_for,
)
from headrace.protocol.schemas.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from headrace.protocol.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headrace.protocol.schemas.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

CLUSTER_DEFAULT = ""
"""The name under which the settings of all brokers stand."""


class Configs:
    """The settings that a cluster keeps."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def names(self, kind: str) -> list[str]:
        """What there is of a kind: all topics and brokers, of others those that have settings."""
        match kind:
            case "topic":
                return self._cluster.topic_names()
            case "broker" | "broker-logger":
                return [str(node_id) for node_id in self._cluster.node_ids()]
        request = ListConfigResourcesRequest(resource_types=[RESOURCE_TYPES[kind]])
        if self._cluster.connection().version_of(request) == 0:
            # Before Kafka 4.1 this call was for client metrics alone.
            if kind != "client-metrics":
                raise UnsupportedVersion(f"this broker is too old to list what is a {kind}")
            request = ListConfigResourcesRequest()
        answer = self._cluster.ask(request, ListConfigResourcesResponse)
        if answer.error_code:
            raise error_for(answer.error_code, error_name(answer.error_code))
        return sorted(one.resource_name for one in answer.config_resources)

    def describe(
        self, kind: str, name: str, *, include_documentation: bool = False
    ) -> list[ConfigEntry]:
        """Every setting of one topic or broker, with where its value comes from."""
        resource = DescribeConfigsResource(
            resource_type=RESOURCE_TYPES[kind], resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=True, include_documentation=False
        )
        node_id = self._node_of(kind, name)
        if self._cluster.connection(node_id).version_of(request) >= 3:
            request.include_documentation = include_documentation

        def attempt() -> list[ConfigEntry]:
            result = self._cluster.ask(request, DescribeConfigsResponse, node_id).results[0]
            if kind == "topic" and result.error_code == UnknownTopicOrPartition.code:
                raise NoSuchTopic(name, self._cluster.topic_names())
            if result.error_code:
                raise error_for(
                    result.error_code,
                    f"{kind} {name!r}: {result.error_message or error_name(result.error_code)}",
                )
            return sorted(map(_entry, result.configs), key=lambda entry: entry.name)

        return self._cluster.retry(attempt)

    def alter(
        self, kind: str, name: str, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> Outcome:
        """Change some settings and leave the others as they are."""
        resource = AlterConfigsResource(
            resource_type=RESOURCE_TYPES[kind],
            resource_name=name,
            configs=[
                AlterableConfig(
                    name=change.name,
                    config_operation=CONFIG_OPERATIONS[change.operation],
                    value=change.value,
                )
                for change in changes
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        node_id = self._node_of(kind, name)
        answer = self._cluster.ask(request, IncrementalAlterConfigsResponse, node_id)
        result = answer.responses[0]
        return self._cluster.explain_missing(
            Outcome(
                name=name,
                error=error_name(result.error_code) if result.error_code else None,
                message=result.error_message,
            )
        )

    def _node_of(self, kind: str, name: str) -> int:
        """A broker answers for its own settings only; everything else any broker knows."""
        if kind not in ("broker", "broker-logger") or name == CLUSTER_DEFAULT:
            return ANY_NODE
        if not name.isdigit():
            raise HeadraceError(f"{name!r} is no broker id; give a number, or `default` for all")
        return int(name)


def _entry(found: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=found.name,
        value=found.value,
        source=CONFIG_SOURCES.get(found.config_source, "UNKNOWN"),
        type=CONFIG_TYPES.get(found.config_type, "UNKNOWN"),
        is_sensitive=found.is_sensitive,
        is_read_only=found.read_only,
        synonyms=[
            ConfigSynonym(
                name=synonym.name,
                value=synonym.value,
                source=CONFIG_SOURCES.get(synonym.source, "UNKNOWN"),
            )
            for synonym in found.synonyms
        ],
        documentation=found.documentation or None,
    )
