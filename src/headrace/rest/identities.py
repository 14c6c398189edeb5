"""In whose name brokers are asked: the proxy's own, or that of who asks the proxy.

`proxy` asks everything in the proxy's name. `basic` hands a caller's user and password on to the
brokers as SASL PLAIN. `file` looks the caller up in a file of properties, where `NAME.property`
gives what a client of that name has beyond the proxy's own properties: `ada.sasl.username=...`.
Each identity has clients of its own; there are at most so many, and the one that nobody has used
for longest is closed for the next.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from headrace.client.loop_producer import WriteCounts
from headrace.errors import InvalidConfig
from headrace.http.principals import Principal, principal_of
from headrace.rest.clients import Clients
from headrace.rest.errors import KAFKA_AUTHORIZATION, RestError
from headrace.rest.settings import RestSettings
from headrace.settings.properties import read_entries

_OWN = ""


class Mode(StrEnum):
    PROXY = "proxy"
    BASIC = "basic"
    FILE = "file"


class Identities:
    """The clients of everybody who asks."""

    def __init__(self, settings: RestSettings) -> None:
        try:
            self._mode = Mode(settings.client_identity)
        except ValueError:
            raise InvalidConfig(
                f"client.identity is {settings.client_identity!r};"
                f" it must be one of {', '.join(Mode)}"
            ) from None
        self._settings = settings
        self.written = WriteCounts()
        self._mapped = _mapped(settings) if self._mode is Mode.FILE else {}
        self._clients: OrderedDict[tuple[str, str], Clients] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, scope: Mapping[str, Any]) -> Clients:
        """The clients that speak in the name of who sent a request."""
        principal = principal_of(scope)
        key = self._key(principal)
        found = self._clients.get(key)
        if found is None:
            properties = self._properties(principal)
            found = self._clients[key] = Clients(self._settings, properties, self.written)
            if len(self._clients) > self._settings.client_identities_max:
                _, oldest = self._clients.popitem(last=False)
                task = asyncio.ensure_future(oldest.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
        else:
            self._clients.move_to_end(key)
        return found

    def own(self) -> Clients:
        """The clients that speak in the proxy's own name."""
        key = (_OWN, _OWN)
        if key not in self._clients:
            self._clients[key] = Clients(self._settings, {}, self.written)
        return self._clients[key]

    def name_of(self, scope: Mapping[str, Any]) -> str:
        """Whose a thing is that only its maker may use; empty where all act in one name."""
        principal = principal_of(scope)
        return _OWN if principal is None else principal.name

    def forget(self, topic: str) -> None:
        """Believe nothing of a topic that was known of it before, in anybody's name."""
        for clients in self._clients.values():
            clients.forget(topic)

    async def close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._clients.values()), *self._closing)
        self._clients.clear()

    def _key(self, principal: Principal | None) -> tuple[str, str]:
        if self._mode is Mode.PROXY:
            return _OWN, _OWN
        if principal is None:
            raise _forbidden("the proxy asks brokers in its callers' names, and you have none")
        return principal.name, principal.password or ""

    def _properties(self, principal: Principal | None) -> dict[str, str]:
        if self._mode is Mode.PROXY or principal is None:
            return {}
        if self._mode is Mode.FILE:
            if principal.name not in self._mapped:
                raise _forbidden(f"{principal.name!r} has no name towards the brokers here")
            return self._mapped[principal.name]
        if principal.password is None:
            raise _forbidden("the proxy hands on users with passwords only: log in as one")
        return {
            "sasl.mechanism": "PLAIN",
            "sasl.username": principal.name,
            "sasl.password": principal.password,
        }


def _mapped(settings: RestSettings) -> dict[str, dict[str, str]]:
    if settings.client_identity_file is None:
        raise InvalidConfig("client.identity=file needs client.identity.file, a properties file")
    found: dict[str, dict[str, str]] = {}
    for entry in read_entries(settings.client_identity_file):
        name, separator, property = _split(entry.name)
        if not separator:
            raise InvalidConfig(
                f"{settings.client_identity_file} line {entry.line}: write NAME.property, as"
                " ada.sasl.username"
            )
        found.setdefault(name, {})[property] = entry.value
    return found


def _split(name: str) -> tuple[str, str, str]:
    """A principal's name may have dots, so the property is where one that we know begins."""
    for start in (".sasl.", ".ssl.", ".security."):
        position = name.find(start)
        if position > 0:
            return name[:position], ".", name[position + 1 :]
    return name, "", ""


def _forbidden(reason: str) -> RestError:
    return RestError(403, KAFKA_AUTHORIZATION, reason)
