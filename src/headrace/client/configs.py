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
from headrace.errors import HeadraceError, UnknownTopicOrPartition, error_for
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

CLUSTER_DEFAULT = ""
"""The name under which the settings of all brokers stand."""


class Configs:
    """The settings that a cluster keeps."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

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
        if kind != "broker" or name == CLUSTER_DEFAULT:
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
