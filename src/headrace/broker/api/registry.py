"""The APIs that this broker serves, and the types that its handlers use.

A handler states its API and versions with `@api`. `make docs` collects them in
`table.py`, so that a node can advertise every API without importing its handler: each
handler is imported by its first request. An API that is missing from the table is not advertised.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

import msgspec

from headrace.broker.api.table import ROWS
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCodes, error_codes_of
from headrace.protocol.message import Message
from headrace.protocol.refusals import Refusal, refusal_of
from headrace.security.access import OPEN, Access, access_of
from headrace.security.acls import Operation, ResourceType
from headrace.security.principals import Caller, Principal
from headrace.security.rights import Rights

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.client_quotas import Meter
    from headrace.broker.connection import LoginState

Answer = Any  # A response message, or its body when the handler has the bytes already.
HandlerFunction = Callable[..., Answer | Awaitable[Answer]]

_Function = TypeVar("_Function", bound=HandlerFunction)


class Peer(Protocol):
    """The fields of a connection that handlers use."""

    host: str
    port: int
    listener: str
    software: tuple[str, str]
    principal: Principal
    access: Access | None
    login: "LoginState | None"


class Call(msgspec.Struct, gc=False):
    """The context of one request: the broker, the client, and the version."""

    broker: "Broker"
    peer: Peer
    version: int
    client_id: str | None = None
    meter: "Meter | None" = None
    """The quotas of the client, if it has any."""
    allowed_at: int = -1
    """The version of the rules that allowed this request, which the client may repeat."""

    @property
    def listener(self) -> str:
        return self.peer.listener

    @property
    def caller(self) -> Caller:
        return Caller(self.peer.principal, self.peer.host, self.client_id or "")

    @property
    def access(self) -> Access:
        """The rights of the client."""
        authorizer = self.broker.authorizer
        return OPEN if authorizer is None else access_of(self.peer, authorizer)

    @property
    def may_describe(self) -> Callable[[str], bool] | None:
        """Returns whether the client may see a topic; None if it may see all topics."""
        if self.broker.authorizer is None:
            return None
        allows = self.access.allows
        return partial(allows, Operation.DESCRIBE, ResourceType.TOPIC, is_audited=False)

    async def ask_controller(self, request: Message) -> Any:
        """Forward a request of the client to the active controller."""
        return await self.broker.controller.ask(request, self.version, self.caller)


class Registration(msgspec.Struct, frozen=True):
    """The facts that `@api` attaches to a handler."""

    key: ApiKey
    versions: range
    refuse: Refusal | None
    advertised_from: int
    rights: Rights | None


def api(
    key: ApiKey,
    *,
    versions: range,
    rights: Rights | None = None,
    refuse: Refusal | None = None,
    advertised_from: int = -1,
) -> Callable[[_Function], _Function]:
    """Mark a function as the handler of an API; module and function are named as the API.

    `rights` declares the rights that the handler or the controller checks; empty for none.
    `refuse` makes the response when the whole request fails, from the request, the error and the
    version, where `refusals.py` cannot derive it from the definitions of the messages.
    `advertised_from` is the lowest version in ApiVersions, if it is below the lowest version
    served.
    """
    first = versions[0] if advertised_from < 0 else advertised_from

    def register(function: _Function) -> _Function:
        function.__dict__["registration"] = Registration(key, versions, refuse, first, rights)
        return function

    return register


class Handler(NamedTuple):
    """A handler with everything that dispatch needs to call it."""

    function: HandlerFunction
    request_type: type[Message]
    response_type: type[Message]
    refuse: Refusal
    error_codes: ErrorCodes


class Entry(msgspec.Struct):
    """One row of the table; the handler is imported by the first request that needs it."""

    key: ApiKey
    versions: range
    family: str  # The package of the handler, below this one.
    advertised_from: int
    resolved: Handler | None = None

    @property
    def advertised(self) -> tuple[int, int]:
        """The lowest and the highest version that ApiVersions answers."""
        return self.advertised_from, self.versions[-1]

    @property
    def module(self) -> str:
        return f"headrace.broker.api.{self.family}.{self.key.name.lower()}"

    def handler(self) -> Handler:
        if self.resolved is None:
            self.resolved = self._resolve()
        return self.resolved

    def _resolve(self) -> Handler:
        function = self.function()
        request_type = function.__annotations__["request"]
        returned = function.__annotations__["return"]
        response_type = returned.__args__[0] if isinstance(returned, UnionType) else returned
        refuse = registration_of(function).refuse or refusal_of(response_type)
        codes = error_codes_of(response_type)
        return Handler(function, request_type, response_type, refuse, codes)

    def function(self) -> HandlerFunction:
        """Import the handler."""
        from importlib import import_module

        return cast(HandlerFunction, getattr(import_module(self.module), self.key.name.lower()))


def registration_of(function: HandlerFunction) -> Registration:
    """Return what `@api` attached to a handler."""
    return cast(Registration, function.__dict__["registration"])


APIS: dict[int, Entry] = {
    int(ApiKey[name]): Entry(ApiKey[name], range(first, last + 1), family, advertised_from)
    for family, name, first, last, advertised_from in ROWS
}
