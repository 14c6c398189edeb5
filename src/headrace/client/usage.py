"""Usage of a cluster by user and client id, added up from the metrics ports of its nodes."""

from collections.abc import Iterable, Sequence
from urllib.error import URLError
from urllib.request import urlopen

import msgspec

from headrace.client.addresses import failure_text
from headrace.errors import HeadraceError
from headrace.quotas.usage_windows import NodeUsage, UsageRow, UsageWindow

_SECONDS_MAX = 10.0
_BYTES_MAX = 64 << 20


class UsageUnavailable(HeadraceError):
    """A node whose usage could not be read."""


def read_usage(address: str) -> NodeUsage:
    """Return the usage of a node, by the address of its metrics port."""
    url = address if "://" in address else f"http://{address}"
    try:
        with urlopen(f"{url.rstrip('/')}/usage", timeout=_SECONDS_MAX) as answer:
            return msgspec.json.decode(answer.read(_BYTES_MAX), type=NodeUsage)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        cause = error.reason if isinstance(error, URLError) else error
        reason = failure_text(cause) if isinstance(cause, OSError) else cause
        raise UsageUnavailable(f"no usage from {address}: {reason}") from error


def added_up(nodes: Sequence[Sequence[UsageWindow]], size_ms: int) -> list[UsageWindow]:
    """Add up windows of nodes that begin in the same minute or hour, oldest first."""
    found: dict[int, list[UsageWindow]] = {}
    for windows in nodes:
        for window in windows:
            found.setdefault(window.begin_ms // size_ms, []).append(window)
    return [
        UsageWindow(
            min(one.begin_ms for one in same),
            max(one.end_ms for one in same),
            _sum(row for one in same for row in one.rows),
        )
        for _, same in sorted(found.items())
    ]


def by_part(windows: Iterable[UsageWindow], part: str) -> list[UsageWindow]:
    """Add up the rows of one user or of one client id; the other part is then empty."""
    cleared = "client_id" if part == "user" else "user"
    return [
        UsageWindow(
            window.begin_ms,
            window.end_ms,
            _sum(msgspec.structs.replace(row, **{cleared: ""}) for row in window.rows),
        )
        for window in windows
    ]


def _sum(rows: Iterable[UsageRow]) -> list[UsageRow]:
    """Return one row for each client, the largest first."""
    found: dict[tuple[str, str], UsageRow] = {}
    for row in rows:
        before = found.get((row.user, row.client_id))
        found[row.user, row.client_id] = row if before is None else _plus(before, row)
    return sorted(found.values(), key=lambda row: -row.bytes_in - row.bytes_out)


def _plus(one: UsageRow, other: UsageRow) -> UsageRow:
    return UsageRow(
        one.user,
        one.client_id,
        one.requests + other.requests,
        one.bytes_in + other.bytes_in,
        one.bytes_out + other.bytes_out,
        one.request_seconds + other.request_seconds,
    )
