"""Where the rows of a commit come from: which offsets, which versions of which tables, by whom."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec


class Lineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Kept in the commit itself, so that no crash parts rows from what is said of them."""

    pipeline: str = ""
    pipeline_version: str = ""
    """As its settings say; empty where they say nothing."""
    pipeline_fingerprint: str = ""
    """By which state of its files; empty in commits of older releases."""
    flow: str = ""
    offsets: Mapping[str, Mapping[str, tuple[int, int]]] = {}
    """For each topic and partition the first offset and the one after the last."""
    inputs: Mapping[str, tuple[int, int]] = {}
    """For each table the version before the first that was read, and the last that was."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        """The lineage in a commit's metadata; None where nothing is said."""
        said = metadata.get("lineage")
        return msgspec.convert(said, cls, strict=False) if said else None

    def document(self) -> dict[str, Any]:
        """As the commit keeps it."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain
