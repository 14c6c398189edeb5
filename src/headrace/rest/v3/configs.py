"""Settings of topics, of brokers and of all brokers, of version 3."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from headrace.client.admin import Admin
from headrace.client.cluster import NoSuchTopic
from headrace.client.configs import CLUSTER_DEFAULT
from headrace.client.descriptions import ConfigChange, ConfigEntry
from headrace.http.operations import Method
from headrace.rest.errors import RestError, check
from headrace.rest.routing import Routes
from headrace.rest.v3.resources import (
    BrokerConfigData,
    ClusterConfigData,
    Collection,
    ConfigData,
    Synonym,
    TopicConfigData,
)
from headrace.rest.v3.routing import CLUSTER, REJECTED, TOPIC, Context, get, not_found, post, route
from headrace.rest.v3.topics import unknown_topic


class Change(StrEnum):
    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


class NewValue(msgspec.Struct, frozen=True):
    value: str | None = None


class ChangeEntry(msgspec.Struct, frozen=True):
    name: str
    value: str | None = None
    operation: Change = Change.SET


class Changes(msgspec.Struct, frozen=True):
    data: list[ChangeEntry]
    validate_only: bool = False


class TopicChange(ChangeEntry, frozen=True, kw_only=True):
    topic_name: str


class TopicChanges(msgspec.Struct, frozen=True):
    data: Annotated[list[TopicChange], Meta(min_length=1)]
    validate_only: bool = False


class Owner(NamedTuple):
    """The owner of settings: a topic, a broker, or all brokers."""

    kind: str
    name: str


_OWNERS: tuple[tuple[str, str, type[ConfigData]], ...] = (
    (f"{TOPIC}/configs", "a topic", TopicConfigData),
    (f"{CLUSTER}/brokers/{{broker_id}}/configs", "a broker", BrokerConfigData),
    (f"{CLUSTER}/broker-configs", "all brokers", ClusterConfigData),
)


def _each_owner(method: str, end: str, summary: str) -> Callable[[Method], Method]:
    """Declare the same operation for each kind of owner."""

    def mark(function: Method) -> Method:
        for path, owner, data in reversed(_OWNERS):
            answers: dict[str, Any] = {"": list[data], "/{name}": data}  # type: ignore[valid-type]
            function = route(
                method,
                path + end,
                summary.format(owner),
                answer=answers[end] if method == "GET" else None,
                errors=None if method == "GET" else REJECTED,
            )(function)
        return function

    return mark


class ConfigRoutes(Routes):
    """Describe and alter settings."""

    @get(f"{CLUSTER}/topics/-/configs", "List the settings of all topics.")
    async def of_all_topics(self, context: Context) -> list[TopicConfigData]:
        return await _of_all(context, "topic")

    @post(
        f"{CLUSTER}/topics/-/configs:alter",
        "Alter settings of several topics; an invalid change prevents all of them.",
        errors=REJECTED,
    )
    async def alter_topics(self, context: Context, body: TopicChanges) -> None:
        """Validate all changes before the first is applied."""
        wanted: dict[str, list[ConfigChange]] = {}
        for one in body.data:
            wanted.setdefault(one.topic_name, []).append(_step(one))
        for is_trial in (True,) if body.validate_only else (True, False):
            for topic, changes in wanted.items():
                await _change(context, Owner("topic", topic), changes, validate_only=is_trial)

    @get(f"{CLUSTER}/brokers/-/configs", "List the settings of each broker.")
    async def of_all_brokers(self, context: Context) -> list[BrokerConfigData]:
        return await _of_all(context, "broker")

    @get(
        f"{TOPIC}/default-configs",
        "List the settings that a topic without own settings would have.",
        answer=list[TopicConfigData],
    )
    async def defaults(self, context: Context) -> Collection[TopicConfigData]:
        owner = Owner("topic", context.topic)
        found = await context.ask(lambda admin: admin.topics.defaults())
        data = [_data(owner, one) for one in found]
        return context.collection("KafkaTopicDefaultConfigList", data, f"{TOPIC}/default-configs")

    @_each_owner("GET", "", "List the settings of {}.")
    async def all(self, context: Context) -> list[ConfigData]:
        owner = await _owner(context)
        found = await context.ask(lambda admin: entries_of(admin, owner))
        return [_data(owner, one) for one in found]

    @_each_owner("POST", ":alter", "Alter several settings of {}.")
    async def alter(self, context: Context, body: Changes) -> None:
        changes = [_step(one) for one in body.data]
        owner = await _owner(context)
        await _change(context, owner, changes, validate_only=body.validate_only)

    @_each_owner("GET", "/{name}", "Describe a setting of {}.")
    async def one(self, context: Context) -> ConfigData:
        owner, name = await _owner(context), context.text("name")

        def ask(admin: Admin) -> ConfigEntry:
            for one in entries_of(admin, owner):
                if one.name == name:
                    return one
            raise _unknown(owner, name, context)

        return _data(owner, await context.ask(ask))

    @_each_owner("PUT", "/{name}", "Set a setting of {}.")
    async def set(self, context: Context, body: NewValue) -> None:
        change = ConfigChange(name=context.text("name"), operation="set", value=body.value)
        await _change(context, await _owner(context), [change])

    @_each_owner("DELETE", "/{name}", "Reset a setting of {} to its default.")
    async def reset(self, context: Context) -> None:
        change = ConfigChange(name=context.text("name"), operation="delete")
        await _change(context, await _owner(context), [change])


async def _owner(context: Context) -> Owner:
    if context.has("topic_name"):
        return Owner("topic", context.topic)
    if not context.has("broker_id"):
        return Owner("broker", CLUSTER_DEFAULT)
    number = context.number("broker_id")
    if number not in await context.ask(lambda admin: admin.cluster.node_ids()):
        raise not_found(f"Broker {number} cannot be found.")
    return Owner("broker", str(number))


async def _of_all(context: Context, kind: str) -> list[Any]:
    def ask(admin: Admin) -> list[ConfigData]:
        owners = [Owner(kind, name) for name in admin.configs.names(kind)]
        return [_data(owner, one) for owner in owners for one in entries_of(admin, owner)]

    return await context.ask(ask)


async def _change(
    context: Context, owner: Owner, changes: Sequence[ConfigChange], *, validate_only: bool = False
) -> None:
    def ask(admin: Admin) -> None:
        known = {one.name for one in entries_of(admin, owner)}
        for change in changes:
            # Defaults of all brokers list only settings with a value; brokers check other names.
            if owner.name != CLUSTER_DEFAULT and change.name not in known:
                raise _unknown(owner, change.name, context)
        check(admin.configs.alter(owner.kind, owner.name, changes, validate_only=validate_only))

    await context.ask(ask)


def _step(one: ChangeEntry) -> ConfigChange:
    return ConfigChange(name=one.name, operation=one.operation.lower(), value=one.value)


def entries_of(admin: Admin, owner: Owner) -> list[ConfigEntry]:
    """Describe the settings of a topic, a broker or all brokers."""
    try:
        return admin.configs.describe(owner.kind, owner.name)
    except NoSuchTopic:
        raise unknown_topic() from None


def _unknown(owner: Owner, name: str, context: Context) -> RestError:
    return not_found(
        f"Config {name} cannot be found for {owner.kind.upper()} {owner.name} in cluster"
        f" {context.links.cluster_id}."
    )


def _data(owner: Owner, entry: ConfigEntry) -> ConfigData:
    fields: dict[str, Any] = {
        "synonyms": [Synonym(one.name, one.value, one.source) for one in entry.synonyms]
    }
    if owner.kind == "topic":
        return TopicConfigData.of(entry, topic_name=owner.name, **fields)
    if owner.name == CLUSTER_DEFAULT:
        return ClusterConfigData.of(entry, **fields)
    return BrokerConfigData.of(entry, broker_id=int(owner.name), **fields)
