"""A mapping being changed, which is what most of a metadata delta is."""

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Edits(Generic[K, V]):
    """A mapping being changed: the base stays as it is, and what was touched is known."""

    __slots__ = ("base", "changed")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.base = base
        self.changed: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        return self.changed[key] if key in self.changed else self.base.get(key)

    def put(self, key: K, value: V) -> None:
        self.changed[key] = value

    def remove(self, key: K) -> None:
        self.changed[key] = None

    def result(self) -> Mapping[K, V]:
        if not self.changed:
            return self.base
        merged: dict[K, V] = dict(self.base)
        for key, value in self.changed.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
        return merged
