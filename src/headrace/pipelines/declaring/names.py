"""Names of datasets: the rules for new names, and the reserved ones."""

import re
from collections.abc import Collection

from headrace.pipelines.model import QUARANTINE, SOURCES
from headrace.pipelines.problems import nearest

WORD = re.compile(r"[a-z][a-z0-9_]*")
LENGTH_MAX = 200
"""A name becomes a folder and part of a checkpoint's name; file systems end at 255."""
TAKEN = (SOURCES, QUARANTINE)
"""Namespaces that a pipeline may read but not declare in."""


def quarantine_of(name: str) -> str:
    """Return the quarantine table of a dataset: `quarantine.staging__orders`."""
    return f"{QUARANTINE}.{name.replace('.', '__')}"


def refusing_table(quarantine: str) -> str:
    """Return the dataset of a quarantine table."""
    return quarantine.partition(".")[2].replace("__", ".", 1)


def zone_of(name: str) -> str:
    """Return the zone of a table, or its namespace: `staging`, `sources`."""
    return name.partition(".")[0]


def is_source(name: str) -> bool:
    """Return whether a name is a topic's: `sources.orders`."""
    return name.startswith(f"{SOURCES}.")


def source_name(name: str) -> str:
    """Return a source's name in pipeline.toml: `orders` for `sources.orders`."""
    return name.partition(".")[2]


def is_quarantine(name: str) -> bool:
    """Return whether a table holds rejected rows of another."""
    return name.startswith(f"{QUARANTINE}.")


def complaint(name: str, zones: Collection[str], *, needs_zone: bool) -> str | None:
    """Return the problem of a new dataset's name, or None.

    Tables need a zone. Temporary views and sinks do not.
    """
    parts = name.split(".")
    if len(name) > LENGTH_MAX:
        return f"{name[:40]}... is too long for a name; use at most {LENGTH_MAX} characters"
    if not all(WORD.fullmatch(part) for part in parts):
        return (
            f"{name!r} is not a valid name; write lower-case letters, digits and underscores,"
            " beginning with a letter, as in staging.orders"
        )
    if "__" in name:
        return f"{name!r}: two underscores together are reserved for internal tables; use one"
    if len(parts) == 1 and needs_zone:
        return f"{name!r} has no zone; name it {zones_text(zones, name)}"
    if len(parts) > 2:
        return f"{name!r} has too many parts; a name is a zone and a table, as in staging.orders"
    if len(parts) == 2 and parts[0] in TAKEN:
        return (
            f"{name!r}: the namespace {parts[0]} is reserved; name it {zones_text(zones, parts[1])}"
        )
    if len(parts) == 2 and parts[0] not in zones:
        return (
            f"{name!r}: {parts[0]} is not a zone; the zones are {', '.join(zones)}. Declare"
            f" it in [zones] of pipeline.toml{nearest(parts[0], zones)}"
        )
    return None


def zones_text(zones: Collection[str], table: str) -> str:
    """`raw.x, staging.x or trusted.x`."""
    *some, last = (f"{zone}.{table}" for zone in zones)
    return f"{', '.join(some)} or {last}" if some else last


def flow_complaint(name: str) -> str | None:
    """Return the problem of a flow's name, or None; the name becomes a checkpoint's folder."""
    if all(WORD.fullmatch(part) for part in name.split(".")) and len(name) <= LENGTH_MAX:
        return None
    return f"{name!r} is not a valid name of a flow; write lower-case letters, digits, underscores"
