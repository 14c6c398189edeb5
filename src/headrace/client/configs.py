"""Settings of topics and brokers over the wire: values, sources and changes."""

from collections.abc import Sequence

from headrace.client.cluster import ANY_NODE, Cluster, NoSuchTopic, check_code, outcome_of
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
from headrace.errors import HeadraceError, UnknownTopicOrPartition, UnsupportedVersion
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
"""Resource name of the defaults for all brokers."""


class Configs:
    """Settings of a cluster's resources."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def names(self, kind: str) -> list[str]:
        """List resources of a kind: all topics and brokers, other kinds only with settings."""
        match kind:
            case "topic":
                return self._cluster.topic_names()
            case "broker" | "broker-logger":
                return [str(node_id) for node_id in self._cluster.node_ids()]
        request = ListConfigResourcesRequest(resource_types=[RESOURCE_TYPES[kind]])
        if self._cluster.connection().version_of(request) == 0:
            # Before Kafka 4.1 this API listed client metrics only.
            if kind != "client-metrics":
                raise UnsupportedVersion(f"this broker is too old to list resources of type {kind}")
            request = ListConfigResourcesRequest()
        answer = self._cluster.query(request, ListConfigResourcesResponse)
        return sorted(one.resource_name for one in answer.config_resources)

    def describe(
        self, kind: str, name: str, *, include_documentation: bool = False
    ) -> list[ConfigEntry]:
        """Return every setting of one topic or broker, with the source of its value."""
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
            check_code(result.error_code, result.error_message, f"{kind} {name!r}")
            return sorted(map(_entry, result.configs), key=lambda entry: entry.name)

        return self._cluster.retry(attempt)

    def values(self, kind: str, names: Sequence[str], config: str) -> dict[str, str | None]:
        """Return one setting of many topics or groups by name; missing resources are left out."""
        resources = [
            DescribeConfigsResource(
                resource_type=RESOURCE_TYPES[kind], resource_name=name, configuration_keys=[config]
            )
            for name in names
        ]
        if not resources:
            return {}
        request = DescribeConfigsRequest(resources=resources)
        answer = self._cluster.query(request, DescribeConfigsResponse)
        return {
            result.resource_name: entry.value
            for result in answer.results
            for entry in result.configs
            if not result.error_code and entry.name == config
        }

    def alter(
        self, kind: str, name: str, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> Outcome:
        """Change some settings and keep the others."""
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
        outcome = outcome_of(name, result.error_code, result.error_message)
        return self._cluster.explain_missing(outcome)

    def _node_of(self, kind: str, name: str) -> int:
        """Return the node to query: a broker for its own settings, any broker for the rest."""
        if kind not in ("broker", "broker-logger") or name == CLUSTER_DEFAULT:
            return ANY_NODE
        if not name.isdigit():
            raise HeadraceError(f"{name!r} is not a broker id; give a number, or `default` for all")
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
