"""The lineage of a commit: the offsets and table versions that it read, and its flow."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec


class Lineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Lineage for a commit, kept in the commit itself so that no crash separates the two."""

    pipeline: str = ""
    pipeline_version: str = ""
    """The version in the pipeline's settings, if any."""
    pipeline_fingerprint: str = ""
    """The state of the pipeline's files; empty in commits of older releases."""
    flow: str = ""
    offsets: Mapping[str, Mapping[str, tuple[int, int]]] = {}
    """By topic and partition: the first offset and the one after the last."""
    inputs: Mapping[str, tuple[int, int]] = {}
    """By table: the version before the first one that was read, and the last one."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        """Read the lineage in a commit's metadata, if there is any."""
        found = metadata.get("lineage")
        return msgspec.convert(found, cls, strict=False) if found else None

    def document(self) -> dict[str, Any]:
        """Return the lineage as the commit's metadata has it."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain
