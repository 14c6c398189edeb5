"""Settings of topics, of brokers and of all brokers, of version 3."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin import Admin
from headrace.client.cluster import NoSuchTopic
from headrace.client.configs import CLUSTER_DEFAULT
from headrace.client.descriptions import ConfigChange, ConfigEntry
from headrace.http.operations import Endpoint, Operation, Parameter
from headrace.rest.errors import check
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    BROKER,
    CLUSTER,
    MISSING,
    NAME,
    TOPIC,
    Context,
    answer,
    json_body,
    not_found,
    nothing,
)
from headrace.rest.v3.resources import Collection, ConfigData, Links, Synonym
from headrace.rest.v3.topics import unknown_topic

_CHANGED = {**MISSING, 400: "The broker refuses it.", 422: "The body is not what it should be."}


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
    """Whose settings are meant: a topic's, a broker's or those of all brokers."""

    kind: str
    name: str

    def place(self) -> tuple[str, ...]:
        match self.kind:
            case "topic":
                return ("topics", self.name, "configs")
            case _ if self.name == CLUSTER_DEFAULT:
                return ("broker-configs",)
            case _:
                return ("brokers", self.name, "configs")

    @property
    def list_kind(self) -> str:
        return f"{self.data_kind}List"

    @property
    def data_kind(self) -> str:
        if self.kind == "topic":
            return "KafkaTopicConfig"
        return "KafkaClusterConfig" if self.name == CLUSTER_DEFAULT else "KafkaBrokerConfig"


class ConfigRoutes:
    """Look at settings and change them."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        base = "/v3/clusters/{cluster_id}"
        everywhere = [
            Operation(
                "GET",
                f"{base}/topics/-/configs",
                self.of_all_topics,
                "The settings of all topics.",
                (CLUSTER,),
                answer=Collection[ConfigData],
                errors=MISSING,
            ),
            Operation(
                "POST",
                f"{base}/topics/-/configs:alter",
                self.alter_topics,
                "Change settings of several topics, once none of the changes is refused.",
                (CLUSTER,),
                body=TopicChanges,
                errors=_CHANGED,
                status=204,
            ),
            Operation(
                "GET",
                f"{base}/brokers/-/configs",
                self.of_all_brokers,
                "The settings of each broker.",
                (CLUSTER,),
                answer=Collection[ConfigData],
                errors=MISSING,
            ),
            Operation(
                "GET",
                f"{base}/topics/{{topic_name}}/default-configs",
                self.defaults,
                "What the settings of a topic would be if it had none of its own.",
                (CLUSTER, TOPIC),
                answer=Collection[ConfigData],
                errors=MISSING,
            ),
        ]
        return [
            *everywhere,
            *self._family(f"{base}/topics/{{topic_name}}/configs", (CLUSTER, TOPIC), "a topic"),
            *self._family(f"{base}/brokers/{{broker_id}}/configs", (CLUSTER, BROKER), "a broker"),
            *self._family(f"{base}/broker-configs", (CLUSTER,), "all brokers"),
        ]

    def _family(self, path: str, at: tuple[Parameter, ...], whose: str) -> list[Operation]:
        """The same five operations, whosever settings they are."""

        def operation(method: str, end: str, endpoint: Endpoint, text: str) -> Operation:
            parameters = (*at, NAME) if end == "/{name}" else at
            body = {"POST": Changes, "PUT": NewValue}.get(method)
            found = {"": Collection[ConfigData], "/{name}": ConfigData}.get(end)
            return Operation(
                method,
                path + end,
                endpoint,
                text,
                parameters,
                body=body,
                answer=found if method == "GET" else None,
                errors=MISSING if method == "GET" else _CHANGED,
                status=200 if method == "GET" else 204,
            )

        return [
            operation("GET", "", self.all, f"The settings of {whose}."),
            operation("POST", ":alter", self.alter, f"Change several settings of {whose}."),
            operation("GET", "/{name}", self.one, f"A setting of {whose}."),
            operation("PUT", "/{name}", self.set, f"Give a setting of {whose} a value."),
            operation("DELETE", "/{name}", self.reset, f"Give a setting of {whose} its default."),
        ]

    async def all(self, request: Request) -> Response:
        context, owner = await self._whose(request)
        found = await context.ask(lambda admin: entries_of(admin, owner))
        data = [_data(context.links, owner, one) for one in found]
        return answer(context.links.collection(owner.list_kind, data, *owner.place()))

    async def one(self, request: Request) -> Response:
        context, owner = await self._whose(request)
        name = request.path_params["name"]
        found = await context.ask(lambda admin: entry_of(admin, owner, name, context.cluster_id))
        return answer(_data(context.links, owner, found))

    async def set(self, request: Request) -> Response:
        context, owner = await self._whose(request)
        body = await json_body(request, NewValue)
        name = request.path_params["name"]
        return await self._change(
            context, owner, [ConfigChange(name=name, operation="set", value=body.value)]
        )

    async def reset(self, request: Request) -> Response:
        context, owner = await self._whose(request)
        name = request.path_params["name"]
        return await self._change(context, owner, [ConfigChange(name=name, operation="delete")])

    async def alter(self, request: Request) -> Response:
        context, owner = await self._whose(request)
        body = await json_body(request, Changes)
        changes = [_step(one) for one in body.data]
        return await self._change(context, owner, changes, validate_only=body.validate_only)

    async def alter_topics(self, request: Request) -> Response:
        """All are tried out before the first is changed, so a mistake changes nothing."""
        context = await Context.of(self._service, request)
        body = await json_body(request, TopicChanges)
        wanted: dict[str, list[ConfigChange]] = {}
        for one in body.data:
            wanted.setdefault(one.topic_name, []).append(_step(one))
        for is_trial in (True,) if body.validate_only else (True, False):
            for topic, changes in wanted.items():
                await self._change(context, Owner("topic", topic), changes, validate_only=is_trial)
        return nothing()

    async def of_all_topics(self, request: Request) -> Response:
        return await self._of_everyone(request, "topic", "topics")

    async def of_all_brokers(self, request: Request) -> Response:
        return await self._of_everyone(request, "broker", "brokers")

    async def defaults(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        owner = Owner("topic", context.topic)
        found = await context.ask(lambda admin: admin.topics.defaults())
        data = [_data(context.links, owner, one) for one in found]
        place = ("topics", owner.name, "default-configs")
        return answer(context.links.collection("KafkaTopicDefaultConfigList", data, *place))

    async def _of_everyone(self, request: Request, kind: str, segment: str) -> Response:
        context = await Context.of(self._service, request)

        def ask(admin: Admin) -> list[ConfigData]:
            owners = [Owner(kind, name) for name in admin.configs.names(kind)]
            return [
                _data(context.links, owner, one)
                for owner in owners
                for one in entries_of(admin, owner)
            ]

        data = await context.ask(ask)
        list_kind = Owner(kind, "-").list_kind
        return answer(context.links.collection(list_kind, data, segment, "-", "configs"))

    async def _change(
        self,
        context: Context,
        owner: Owner,
        changes: Sequence[ConfigChange],
        *,
        validate_only: bool = False,
    ) -> Response:
        def ask(admin: Admin) -> None:
            known = {one.name for one in entries_of(admin, owner)}
            for change in changes:
                # Of all brokers only what was set for all is listed; a broker judges the rest.
                if owner.name != CLUSTER_DEFAULT and change.name not in known:
                    raise _unknown(owner, change.name, context.cluster_id)
            check(admin.configs.alter(owner.kind, owner.name, changes, validate_only=validate_only))

        await context.ask(ask)
        return nothing()

    async def _whose(self, request: Request) -> tuple[Context, Owner]:
        context = await Context.of(self._service, request)
        if "topic_name" in request.path_params:
            return context, Owner("topic", context.topic)
        if "broker_id" in request.path_params:
            number = context.number("broker_id")
            known = await context.ask(lambda admin: admin.cluster.node_ids())
            if number not in known:
                raise not_found(f"Broker {number} cannot be found.")
            return context, Owner("broker", str(number))
        return context, Owner("broker", CLUSTER_DEFAULT)


def _step(one: ChangeEntry) -> ConfigChange:
    return ConfigChange(name=one.name, operation=one.operation.lower(), value=one.value)


def entries_of(admin: Admin, owner: Owner) -> list[ConfigEntry]:
    """The settings of a topic, a broker or all brokers."""
    try:
        return admin.configs.describe(owner.kind, owner.name)
    except NoSuchTopic:
        raise unknown_topic() from None


def entry_of(admin: Admin, owner: Owner, name: str, cluster_id: str) -> ConfigEntry:
    for one in entries_of(admin, owner):
        if one.name == name:
            return one
    raise _unknown(owner, name, cluster_id)


def _unknown(owner: Owner, name: str, cluster_id: str) -> Exception:
    return not_found(
        f"Config {name} cannot be found for {owner.kind.upper()} {owner.name} in cluster"
        f" {cluster_id}."
    )


def _data(links: Links, owner: Owner, entry: ConfigEntry) -> ConfigData:
    whose = {
        "KafkaTopicConfig": f"topic={owner.name}/config={entry.name}",
        "KafkaBrokerConfig": f"broker={owner.name}/config={entry.name}",
        "KafkaClusterConfig": f"broker-config={entry.name}",
    }[owner.data_kind]
    return ConfigData(
        kind=owner.data_kind,
        metadata=links.metadata(*owner.place(), entry.name, crn=whose),
        cluster_id=links.cluster_id,
        topic_name=owner.name if owner.kind == "topic" else None,
        broker_id=int(owner.name) if owner.data_kind == "KafkaBrokerConfig" else None,
        config_type="BROKER" if owner.data_kind == "KafkaClusterConfig" else None,
        name=entry.name,
        value=entry.value,
        is_default=entry.is_default,
        is_read_only=entry.is_read_only,
        is_sensitive=entry.is_sensitive,
        source=entry.source,
        synonyms=[Synonym(one.name, one.value, one.source) for one in entry.synonyms],
    )
