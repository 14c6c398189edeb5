"""Rules of objects and arrays for members without a schema of their own."""

from typing import Protocol

from headrace.registry.compatibility.json_schema.changes import Change, Differences, found, under
from headrace.registry.compatibility.json_schema.nodes import Anything, Node, Nothing


class Comparer(Protocol):
    """Compares inner schemas, and judges their differences."""

    def compare(self, old: Node | None, new: Node | None) -> Differences: ...

    def survives(self, differences: Differences) -> bool:
        """Return whether none of these differences breaks a reader."""
        ...


def additional(comparer: Comparer, keyword: str, old: bool | Node, new: bool | Node) -> Differences:
    """`additionalProperties` and `additionalItems`: forbidden, free, or described."""
    name = "ADDITIONAL_" + keyword.removeprefix("additional").upper()
    if (old is False) != (new is False):
        return found(Change[f"{name}_{'REMOVED' if new is False else 'ADDED'}"], keyword)
    if isinstance(old, bool) and isinstance(new, bool):
        return ()
    if isinstance(old, bool) or isinstance(new, bool):
        return found(Change[f"{name}_{'NARROWED' if old is True else 'EXTENDED'}"], keyword)
    return under((keyword,), comparer.compare(old, new))


def unevaluated(
    comparer: Comparer, keyword: str, old: Node | None, new: Node | None
) -> Differences:
    """`unevaluatedProperties` and `unevaluatedItems`, where absent means free."""
    if old is None and new is None:
        return ()
    name = "UNEVALUATED_" + keyword.removeprefix("unevaluated").upper()
    if isinstance(old, Nothing) != isinstance(new, Nothing):
        return found(
            Change[f"{name}_{'REMOVED' if isinstance(new, Nothing) else 'ADDED'}"], keyword
        )
    if old is None or (isinstance(old, Anything) and not isinstance(new, Anything | None)):
        return found(Change[f"{name}_NARROWED"], keyword)
    if new is None or (isinstance(new, Anything) and not isinstance(old, Anything)):
        return found(Change[f"{name}_EXTENDED"], keyword)
    return under((keyword,), comparer.compare(old, new))


def covered(comparer: Comparer, name: str, old: Node, new: Node) -> Differences:
    """Compare a property or item of one side with the other side's schema for further members."""
    changes = comparer.compare(old, new)
    verdict = "IS_COVERED" if comparer.survives(changes) else "NOT_COVERED"
    return changes + found(Change[f"{name}_{verdict}_BY_PARTIALLY_OPEN_CONTENT_MODEL"])
