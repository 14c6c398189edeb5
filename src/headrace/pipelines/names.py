"""Names of datasets: which ones may be declared, and which mean something already."""

import re
from collections.abc import Collection

from headrace.pipelines.model import QUARANTINE, SOURCES
from headrace.pipelines.problems import nearest

WORD = re.compile(r"[a-z][a-z0-9_]*")
LENGTH_MAX = 200
"""A name becomes a folder, and a checkpoint beside it; file systems end at 255."""
TAKEN = (SOURCES, QUARANTINE)
"""Namespaces that a pipeline reads from, but declares nothing in."""


def quarantine_of(name: str) -> str:
    """The table of what a dataset refused: `quarantine.staging__orders` for `staging.orders`."""
    return f"{QUARANTINE}.{name.replace('.', '__')}"


def refusing_table(quarantine: str) -> str:
    """The dataset whose refused rows a table of quarantine holds."""
    return quarantine.partition(".")[2].replace("__", ".", 1)


def zone_of(name: str) -> str:
    """The zone of a table, or the namespace that stands in its place: `staging`, `sources`."""
    return name.partition(".")[0]


def is_source(name: str) -> bool:
    """Whether a name is a topic's: `sources.orders`."""
    return name.startswith(f"{SOURCES}.")


def source_name(name: str) -> str:
    """What pipeline.toml calls a source: `orders` for `sources.orders`."""
    return name.partition(".")[2]


def is_quarantine(name: str) -> bool:
    """Whether a table holds what another has refused."""
    return name.startswith(f"{QUARANTINE}.")


def complaint(name: str, zones: Collection[str], *, needs_zone: bool) -> str | None:
    """What is wrong with the name of a new dataset, or None.

    Tables live in a zone. Views that are not stored and sinks may do without one.
    """
    parts = name.split(".")
    if len(name) > LENGTH_MAX:
        return f"{name[:40]}... is too long for a name; take at most {LENGTH_MAX} characters"
    if not all(WORD.fullmatch(part) for part in parts):
        return (
            f"{name!r} is no name; write lower-case letters, digits and underscores, beginning"
            " with a letter, as in staging.orders"
        )
    if "__" in name:
        return f"{name!r}: two underscores together mark the tables kept beside yours; use one"
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
            f"{name!r}: the zones are {', '.join(zones)}, and {parts[0]} is none of them; declare"
            f" it in [zones] of pipeline.toml{nearest(parts[0], zones)}"
        )
    return None


def zones_text(zones: Collection[str], table: str) -> str:
    """`raw.x, staging.x or trusted.x`."""
    *some, last = (f"{zone}.{table}" for zone in zones)
    return f"{', '.join(some)} or {last}" if some else last


def flow_complaint(name: str) -> str | None:
    """What is wrong with the name of a flow, or None; it becomes a checkpoint's folder."""
    if all(WORD.fullmatch(part) for part in name.split(".")) and len(name) <= LENGTH_MAX:
        return None
    return f"{name!r} is no name of a flow; write lower-case letters, digits and underscores"
