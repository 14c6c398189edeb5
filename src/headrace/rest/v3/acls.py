"""Access rules of version 3; they need brokers with an authorizer."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.acls import (
    AclBinding,
    AclFilter,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.client.acls import Operation as AclOperation
from headrace.client.admin import Admin
from headrace.http.operations import Operation, Parameter
from headrace.rest.errors import bad_request, check, invalid_payload
from headrace.rest.service import Service
from headrace.rest.v3.answers import (
    CLUSTER,
    MISSING,
    Context,
    answer,
    json_body,
)
from headrace.rest.v3.resources import AclData, AclList, Collection, Links, Metadata

E = TypeVar("E", bound=IntEnum)

_RULES_MAX = 1_000


class NewAcl(msgspec.Struct, frozen=True):
    """A rule to be added."""

    resource_type: str
    resource_name: str
    principal: str
    operation: str
    permission: str
    pattern_type: str = "LITERAL"
    host: str = "*"


class NewAcls(msgspec.Struct, frozen=True):
    data: list[NewAcl]


class AclRoutes:
    """Search, add and remove rules."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def operations(self) -> list[Operation]:
        acls = "/v3/clusters/{cluster_id}/acls"
        filters = tuple(
            Parameter(name, "Only rules that have this.")
            for name in (
                *("resource_type", "resource_name", "pattern_type", "principal"),
                *("host", "operation", "permission"),
            )
        )
        refused = {**MISSING, 400: "The broker has no authorizer, or refuses the rule."}
        return [
            Operation(
                "GET",
                acls,
                self.search,
                "Search rules.",
                (CLUSTER, *filters),
                answer=Collection[AclData],
                errors=refused,
            ),
            Operation(
                "POST",
                acls,
                self.create,
                "Add a rule.",
                (CLUSTER,),
                body=NewAcl,
                errors=refused,
                status=201,
            ),
            Operation(
                "DELETE",
                acls,
                self.delete,
                "Remove the rules that fit.",
                (CLUSTER, *filters),
                answer=AclList,
                errors=refused,
            ),
            Operation(
                "POST",
                f"{acls}:batch",
                self.create_several,
                "Add several rules.",
                (CLUSTER,),
                body=NewAcls,
                errors=refused,
                status=201,
            ),
        ]

    async def search(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        given = request.query_params
        wanted = _filter(given)
        found = await context.ask(lambda admin: admin.acls.find(wanted))
        data = [_data(context.links, one) for one in found]
        query = {name: str(value) for name, value in given.items()}
        listed = context.links.collection("KafkaAclList", data, "acls")
        self_ = msgspec.structs.replace(listed.metadata, self_=context.links.url("acls", **query))
        return answer(msgspec.structs.replace(listed, metadata=self_))

    async def create(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        binding = _binding(await json_body(request, NewAcl))
        await self._create(context, [binding])
        headers = {"Location": _data(context.links, binding).metadata.self_}
        return Response(status_code=201, headers=headers)

    async def create_several(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        body = await json_body(request, NewAcls)
        if len(body.data) > _RULES_MAX:
            raise invalid_payload(f"At most {_RULES_MAX} rules come in one request.")
        await self._create(context, [_binding(one) for one in body.data])
        return Response(status_code=201)

    async def delete(self, request: Request) -> Response:
        context = await Context.of(self._service, request)
        for name in ("resource_type", "pattern_type", "operation", "permission"):
            if request.query_params.get(name, "UNKNOWN").upper() == "UNKNOWN":
                raise bad_request(f"{name} cannot be unspecified or UNKNOWN")
        wanted = _filter(request.query_params)
        found = await context.ask(lambda admin: admin.acls.delete(wanted))
        return answer(AclList([_data(context.links, one) for one in found]))

    async def _create(self, context: Context, bindings: list[AclBinding]) -> None:
        def ask(admin: Admin) -> None:
            for outcome in admin.acls.create(bindings):
                check(outcome)

        await context.ask(ask)


def _filter(given: Mapping[str, Any]) -> AclFilter:
    return AclFilter(
        resource_type=_member(ResourceType, "resource_type", given.get("resource_type", "ANY")),
        resource_name=given.get("resource_name") or None,
        pattern_type=_member(PatternType, "pattern_type", given.get("pattern_type", "ANY")),
        principal=given.get("principal") or None,
        host=given.get("host") or None,
        operation=_member(AclOperation, "operation", given.get("operation", "ANY")),
        permission=_member(Permission, "permission", given.get("permission", "ANY")),
    )


def _binding(given: NewAcl) -> AclBinding:
    return AclBinding(
        _member(ResourceType, "resource_type", given.resource_type),
        given.resource_name,
        _member(PatternType, "pattern_type", given.pattern_type),
        given.principal,
        given.host,
        _member(AclOperation, "operation", given.operation),
        _member(Permission, "permission", given.permission),
    )


def _member(kind: type[E], name: str, text: str) -> E:
    try:
        return kind[text.upper()]
    except KeyError:
        names = ", ".join(kind.__members__)
        raise bad_request(f"{name} is {text[:40]!r}; it must be one of {names}") from None


def _data(links: Links, one: AclBinding) -> AclData:
    fields = {
        "resource_type": one.resource_type.name,
        "resource_name": one.resource_name,
        "pattern_type": one.pattern_type.name,
        "principal": one.principal,
        "host": one.host,
        "operation": one.operation.name,
        "permission": one.permission.name,
    }
    return AclData(
        metadata=Metadata(links.url("acls", **fields)), cluster_id=links.cluster_id, **fields
    )
