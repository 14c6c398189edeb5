"""Subscriptions: topics, target, format, retries and dead letters."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from headrace.rest.errors import RestError, unprocessable
from headrace.rest.formats import Format
from headrace.rest.push.filters import Filter, compiled
from headrace.rest.push.requested import Formats
from headrace.rest.webhooks import targets
from headrace.rest.webhooks.targets import AllowedTargets, Target

Topic = Annotated[str, Meta(min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$")]

NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\t -~]{0,2000}")
_REFERENCE = re.compile(r"\$\{([A-Za-z0-9._-]+)\}")
_OURS = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection"})
_HEADERS_MAX = 20
_DAY_MS = 86_400_000


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts of a delivery, and the wait between them."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = 5
    initial_ms: Annotated[int, Meta(ge=10, le=60_000)] = 500
    max_ms: Annotated[int, Meta(ge=10, le=3_600_000)] = 30_000
    pause_after_ms: Annotated[int, Meta(ge=10, le=7 * _DAY_MS)] = _DAY_MS
    """Time after which a batch without delivery or dead letter pauses the subscription."""

    def wait_ms(self, attempt: int) -> int:
        """Return the wait after an attempt, counted from 1: it doubles up to its bound."""
        return min(self.max_ms, self.initial_ms << min(attempt - 1, 20))


class Subscription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A subscription; it names secrets, which the proxy reads from a file."""

    topics: Annotated[list[Topic], Meta(min_length=1, max_length=50)]
    target: str
    group: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^\S.*$")] | None = None
    format: Format = Format.BINARY
    key_format: Format | None = None
    start: Annotated[str, Meta(pattern="^(earliest|latest)$")] = msgspec.field(
        default="latest", name="from"
    )
    batch_size: Annotated[int, Meta(ge=1, le=1_000)] = 1
    headers: dict[str, str] = {}
    filter: str | None = None
    timeout_ms: Annotated[int, Meta(ge=10, le=600_000)] = 10_000
    """Time limit of a delivery."""
    retry: Retry = Retry()
    dead_letter_topic: Topic | None = None
    secret: str | None = None
    """The name of a secret in webhook.secrets.file that signs deliveries."""
    paused: bool = False
    paused_because: str | None = None
    """The reason of a pause by the proxy; callers cannot set it."""

    def group_of(self, name: str) -> str:
        return self.group or f"rest-subscription-{name}"

    @property
    def formats(self) -> Formats:
        return Formats(self.key_format or self.format, self.format)

    @property
    def address(self) -> Target:
        return targets.parsed(self.target)

    @property
    def condition(self) -> Filter | None:
        return None if self.filter is None else compiled(self.filter)


def check(given: Subscription, allowed: AllowedTargets, secrets: Collection[str]) -> None:
    """Reject a subscription that could never deliver."""
    allowed.check(given.address)
    assert given.condition is None or given.condition.text == given.filter
    if given.dead_letter_topic in given.topics:
        raise unprocessable("dead_letter_topic is one of the topics, which would be a loop")
    if given.secret is not None and given.secret not in secrets:
        raise _no_secret(given.secret)
    if len(given.headers) > _HEADERS_MAX:
        raise unprocessable(f"at most {_HEADERS_MAX} headers are allowed")
    for name, value in given.headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise unprocessable(f"the header {name[:40]!r} is not valid in HTTP")
        if name.lower() in _OURS or name.lower().startswith("x-headrace-"):
            raise unprocessable(f"the header {name} is set by the proxy")
        for secret in _REFERENCE.findall(value):
            if secret not in secrets:
                raise _no_secret(secret)


def filled(headers: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """Replace ${NAME} in headers by secrets, for one delivery."""
    return {
        name: _REFERENCE.sub(lambda found: secrets.get(found[1], ""), value)
        for name, value in headers.items()
    }


def _no_secret(name: str) -> RestError:
    return unprocessable(f"webhook.secrets.file has no secret {name[:40]!r}")
