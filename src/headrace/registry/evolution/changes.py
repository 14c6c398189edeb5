"""One addition, removal or change between two schemas, for people."""

from enum import StrEnum

import msgspec


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(msgspec.Struct, frozen=True):
    """A difference, its place and its details."""

    kind: ChangeKind
    path: str
    detail: str = ""


def named_change(name: str, path: str) -> Change:
    """Return the change for one of Confluent's names, such as FIELD_ADDED."""
    words = name.lower().replace("_", " ")
    for kind in (ChangeKind.ADDED, ChangeKind.REMOVED):
        if f" {kind} " in f" {words} ":
            return Change(kind, path, words)
    return Change(ChangeKind.CHANGED, path, words)
