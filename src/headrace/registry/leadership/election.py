"""The election of the leader by Confluent's protocol, in a Kafka group of type `sr`.

Every member joins with its identity; the group's first member elects the leader. Instances of
Confluent's registry may be in the same group.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from headrace.errors import HeadraceError
from headrace.runtime.addresses import address_text

PROTOCOL_TYPE = "sr"
PROTOCOL = "v0"
NO_ERROR = 0
DUPLICATE_URLS = 1

S = TypeVar("S", bound=msgspec.Struct)


class NotOfARegistry(HeadraceError):
    """A member of the group that does not follow this protocol."""


class Identity(msgspec.Struct, frozen=True):
    """An instance as it appears to the others."""

    host: str
    port: int
    master_eligibility: bool = True
    scheme: str = "http"
    version: int = 1
    leader: bool = False

    @property
    def url(self) -> str:
        return f"{self.scheme}://{address_text(self.host, self.port)}"

    def is_same(self, other: "Identity | None") -> bool:
        return other is not None and self.url == other.url

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)


class Assignment(msgspec.Struct, frozen=True, omit_defaults=True):
    """The elected leader, the same for all members."""

    error: int = msgspec.field(default_factory=int)
    master: str | None = None
    master_identity: Identity | None = None
    version: int = msgspec.field(default_factory=lambda: 1)

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)


def decoded_identity(data: bytes) -> Identity:
    return _decoded(data, Identity)


def decoded_assignment(data: bytes) -> Assignment:
    return _decoded(data, Assignment)


def elect(members: Mapping[str, Identity]) -> Assignment:
    """Elect the present leader, since a change costs a pause, or the smallest URL.

    Two members with the same URL are an error: writes could be forwarded to the wrong one.
    """
    eligible = {id: one for id, one in members.items() if one.master_eligibility}
    leading = [id for id, one in eligible.items() if one.leader]
    if len(leading) == 1:
        chosen: str | None = leading[0]
    else:
        chosen = min(eligible, key=lambda id: eligible[id].url, default=None)
    urls = {one.url for one in members.values()}
    error = NO_ERROR if len(urls) == len(members) else DUPLICATE_URLS
    return Assignment(error, chosen, None if chosen is None else eligible[chosen])


def _decoded(data: bytes, type: type[S]) -> S:
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.MsgspecError as error:
        raise NotOfARegistry(
            f"not the data of a schema registry: {data[:200]!r}: {error}"
        ) from error
