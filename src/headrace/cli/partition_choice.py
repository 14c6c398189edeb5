"""Partitions that a user names, held against those that there are."""

from collections.abc import Iterable, Sequence

from headrace.errors import HeadraceError


def check_partitions(topic: str, wanted: Iterable[int], present: Sequence[int]) -> None:
    """Refuse a partition that the topic does not have, and say which it has."""
    if missing := sorted(set(wanted) - set(present)):
        raise HeadraceError(f"{topic} has no partition {missing[0]}; it has 0 to {present[-1]}")
