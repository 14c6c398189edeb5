"""Change dynamic configs: of topics, of brokers, of client metrics and of groups.

IncrementalAlterConfigs lists changes. The older AlterConfigs lists all configs of a resource, so it
removes every config that it does not list. Both lead to the same ConfigRecords.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from headrace.controller.decision import Decision, check_size
from headrace.controller.topic_names import check_topic_name
from headrace.errors import (
    BrokerIdNotRegistered,
    InvalidConfig,
    InvalidRequest,
    KafkaError,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import ConfigResource, MetadataImage, ResourceType
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.records.metadata import ClearElrRecord, ConfigRecord

if TYPE_CHECKING:
    from headrace.protocol.schemas import alter_configs as replacing
    from headrace.protocol.schemas import incremental_alter_configs as incremental

_VALUE_SIZE_MAX = 32_767
_MIN_ISR = "min.insync.replicas"


CONFIG_RESOURCES = (
    "there are topics (2), brokers (4), broker loggers (8), client metrics (16) and groups (32)"
)


class ConfigRules(Protocol):
    """The rules of configs that depend on the settings."""

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Raise unless the resource may have these configs.

        `configs` are all configs of the resource. Those of a broker are only the changed ones:
        a newer version may have set the others, which must not block a change.
        """

    def is_list(self, resource_type: int, name: str) -> bool:
        """Return whether a config holds a list, to which values can be appended."""

    def default(self, resource_type: int, name: str) -> str | None:
        """Return the value, as text, of a config that is not set."""


class RequestedResource(Protocol):
    """The fields that the resources of both requests share."""

    resource_type: int
    resource_name: str


Requested = TypeVar("Requested", bound=RequestedResource)


class Operation(IntEnum):
    """An operation of an incremental change."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResult(msgspec.Struct):
    """The outcome for one resource of a request."""

    resource: ConfigResource
    error: KafkaError | None = None


def incremental_alter_configs(
    image: MetadataImage,
    resources: Sequence["incremental.AlterConfigsResource"],
    rules: ConfigRules,
    *,
    validate_only: bool = False,
) -> Decision[list[ConfigResult]]:
    """Set, delete, append to or subtract from single configs."""

    def changes(
        resource: ConfigResource, requested: "incremental.AlterConfigsResource"
    ) -> dict[str, str | None]:
        _check_distinct(config.name for config in requested.configs)
        present = image.configs_of(*resource)
        return {
            config.name: _operate(config, resource, present.get(config.name), rules)
            for config in requested.configs
        }

    return _alter(image, resources, changes, rules, validate_only=validate_only)


def alter_configs(
    image: MetadataImage,
    resources: Sequence["replacing.AlterConfigsResource"],
    rules: ConfigRules,
    *,
    validate_only: bool = False,
) -> Decision[list[ConfigResult]]:
    """Replace all configs of a resource by those given."""

    def changes(
        resource: ConfigResource, requested: "replacing.AlterConfigsResource"
    ) -> dict[str, str | None]:
        _check_distinct(config.name for config in requested.configs)
        wanted = {config.name: _not_null(config.name, config.value) for config in requested.configs}
        dropped = dict.fromkeys(image.configs_of(*resource))
        return {**dropped, **wanted}

    return _alter(image, resources, changes, rules, validate_only=validate_only)


def config_records(
    image: MetadataImage,
    resource: ConfigResource,
    changes: Mapping[str, str | None],
    rules: ConfigRules,
) -> list[VersionedRecord]:
    """Return the records that change configs of a resource; the value None removes a config."""
    present = image.configs_of(*resource)
    result = changes if resource.type == ResourceType.BROKER else {**present, **changes}
    missing = [name for name, value in changes.items() if value is None and name not in present]
    if missing and resource.name not in image.topics and resource.type == ResourceType.TOPIC:
        raise InvalidConfig(
            f"a new topic cannot have a null value for {', '.join(missing)}; leave it out instead"
        )
    for name, value in changes.items():
        if value is not None and len(value.encode()) > _VALUE_SIZE_MAX:
            raise InvalidConfig(
                f"the value of {name} must not be longer than {_VALUE_SIZE_MAX} bytes"
            )
    rules.check(resource, {name: value for name, value in result.items() if value is not None})
    return [
        VersionedRecord(ConfigRecord(resource.type, resource.name, name, value))
        for name, value in changes.items()
        # A broker config is written even if unchanged: its record makes brokers reload the file
        # that the value names, such as a renewed key store.
        if present.get(name) != value or resource.type == ResourceType.BROKER
    ]


def _alter(
    image: MetadataImage,
    resources: Sequence[Requested],
    changes: Callable[[ConfigResource, Requested], dict[str, str | None]],
    rules: ConfigRules,
    *,
    validate_only: bool,
) -> Decision[list[ConfigResult]]:
    requested = [ConfigResource(one.resource_type, one.resource_name) for one in resources]
    count = Counter(requested)
    records: list[VersionedRecord] = []
    results: dict[ConfigResource, ConfigResult] = {}
    for resource, request in zip(requested, resources, strict=True):
        results[resource] = result = ConfigResult(resource)
        try:
            if count[resource] > 1:
                raise InvalidRequest(
                    "each resource may appear once in a request; put its changes together"
                )
            _check_resource(image, resource)
            changed = changes(resource, request)
            _check_elr(image, resource, changed)
            records.extend(config_records(image, resource, changed, rules))
        except KafkaError as error:
            result.error = error
    records += _clear_elr_records(image, records)
    check_size(records, "changing these configs")
    return Decision([] if validate_only else records, list(results.values()))


def _check_resource(image: MetadataImage, resource: ConfigResource) -> None:
    match resource.type:
        case ResourceType.TOPIC:
            if not resource.name:
                raise InvalidRequest("topics have no common configs; name one topic")
            if resource.name not in image.topics:
                check_topic_name(resource.name)
                raise UnknownTopicOrPartition(f"topic '{resource.name}' does not exist")
        case ResourceType.BROKER:
            _check_broker_name(image, resource.name)
        case ResourceType.CLIENT_METRICS | ResourceType.GROUP:
            if not resource.name:
                raise InvalidRequest(
                    "name the group or the client metrics subscription whose configs to change"
                )
        case unknown:
            raise InvalidRequest(f"resource type {unknown} has no configs; {CONFIG_RESOURCES}")


def _check_broker_name(image: MetadataImage, name: str) -> None:
    if not name:
        return  # The configs of all brokers.
    if not (name.isascii() and name.isdigit()):
        raise InvalidRequest(f"a broker is named by its number, not by {name!r}")
    if int(name) not in image.brokers and int(name) not in image.controllers:
        raise BrokerIdNotRegistered(
            f"no node with the id {name} is registered; name one that is, or none for all"
        )


def _check_elr(
    image: MetadataImage, resource: ConfigResource, changes: Mapping[str, str | None]
) -> None:
    """Keep one min.insync.replicas for the cluster, on which eligible leader replicas depend."""
    if not image.uses_elr or resource.type != ResourceType.BROKER or _MIN_ISR not in changes:
        return
    if resource.name:
        raise InvalidConfig(
            f"{_MIN_ISR} cannot differ between brokers while eligible leader replicas are in use; "
            "set it for the cluster or for a topic"
        )
    if changes[_MIN_ISR] is None:
        raise InvalidConfig(
            f"{_MIN_ISR} of the cluster cannot be removed while eligible leader replicas are in "
            "use; set it to another value"
        )


def _clear_elr_records(
    image: MetadataImage, changes: Sequence[VersionedRecord]
) -> list[VersionedRecord]:
    """Clear eligible leaders where min.insync.replicas changes.

    They have all records only as long as a smaller ISR cannot commit any. With a lower value the
    present ISR may commit records that they lack.
    """
    if not image.uses_elr:
        return []
    changed = [
        record
        for record, _ in changes
        if isinstance(record, ConfigRecord)
        and record.name == _MIN_ISR
        and image.configs_of(record.resource_type, record.resource_name).get(_MIN_ISR)
        != record.value
    ]
    if any(record.resource_type == ResourceType.BROKER for record in changed):
        return [VersionedRecord(ClearElrRecord(""))]  # Clears all topics.
    return [VersionedRecord(ClearElrRecord(record.resource_name)) for record in changed]


def _operate(
    config: "incremental.AlterableConfig",
    resource: ConfigResource,
    present: str | None,
    rules: ConfigRules,
) -> str | None:
    """Return the value of a config after the operation."""
    match config.config_operation:
        case Operation.SET:
            return _not_null(config.name, config.value)
        case Operation.DELETE:
            return None
        case Operation.APPEND | Operation.SUBTRACT:
            value = _not_null(config.name, config.value)
        case unknown:
            raise InvalidRequest(
                f"config operation {unknown} of {config.name} is unknown; there are SET (0), "
                "DELETE (1), APPEND (2) and SUBTRACT (3)"
            )
    if not rules.is_list(resource.type, config.name):
        raise InvalidConfig(f"{config.name} is not a list; set its whole value instead")
    whole = rules.default(resource.type, config.name) if present is None else present
    items = [item for item in (whole or "").split(",") if item]
    named = value.split(",")
    if config.config_operation == Operation.APPEND:
        items += [item for item in named if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)


def _not_null(name: str, value: str | None) -> str:
    if value is None:
        raise InvalidRequest(f"the value of {name} is null; delete the config to remove it")
    return value


def _check_distinct(names: Iterable[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidRequest(
            f"{repeated[0]} is named more than once for one resource; name it once"
        )
