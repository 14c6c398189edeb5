"""Identities of requests to brokers: that of the proxy, or those of its callers.

`proxy` uses the identity of the proxy for all requests. `basic` passes a caller's user and password
to the brokers as SASL PLAIN. `file` looks up the caller in a file of properties, where
`NAME.property` adds properties for that caller: `ada.sasl.username=...`. Each identity has its own
clients. Their number is bounded, and the least recently used clients are closed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from headrace.client.loop_producer import WriteCounts
from headrace.errors import InvalidConfig
from headrace.http.access import Principal, principal_of
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
    """The clients of all identities."""

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
        """Return the clients of the caller of a request."""
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
        """Return the clients of the proxy itself."""
        key = (_OWN, _OWN)
        if key not in self._clients:
            self._clients[key] = Clients(self._settings, {}, self.written)
        return self._clients[key]

    def name_of(self, scope: Mapping[str, Any]) -> str:
        """Return the owner of resources created by a request; empty without login."""
        principal = principal_of(scope)
        return _OWN if principal is None else principal.name

    def forget(self, topic: str) -> None:
        """Drop the cached metadata of a topic for all identities."""
        for clients in self._clients.values():
            clients.forget(topic)

    async def close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._clients.values()), *self._closing)
        self._clients.clear()

    def _key(self, principal: Principal | None) -> tuple[str, str]:
        if self._mode is Mode.PROXY:
            return _OWN, _OWN
        if principal is None:
            raise _forbidden("the proxy uses the identity of its callers, so a login is required")
        return principal.name, principal.password or ""

    def _properties(self, principal: Principal | None) -> dict[str, str]:
        if self._mode is Mode.PROXY or principal is None:
            return {}
        if self._mode is Mode.FILE:
            if principal.name not in self._mapped:
                raise _forbidden(f"{principal.name!r} has no identity in client.identity.file")
            return self._mapped[principal.name]
        if principal.password is None:
            raise _forbidden("the proxy passes on passwords only: log in with user and password")
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
                f"{settings.client_identity_file} line {entry.line}: write NAME.property, such as"
                " ada.sasl.username"
            )
        found.setdefault(name, {})[property] = entry.value
    return found


def _split(name: str) -> tuple[str, str, str]:
    """Split at the start of a known property, because a principal's name may have dots."""
    for start in (".sasl.", ".ssl.", ".security."):
        position = name.find(start)
        if position > 0:
            return name[:position], ".", name[position + 1 :]
    return name, "", ""


def _forbidden(reason: str) -> RestError:
    return RestError(403, KAFKA_AUTHORIZATION, reason)
