"""Checks of the partitions of offsets before a transaction."""

from collections.abc import Collection

import pytest

from headrace.errors import TopicAuthorizationFailed
from headrace.rest.errors import RestError
from headrace.rest.v3.reached_offsets import (
    ConsumerOffsets,
    Partitions,
    ReachedOffset,
    check_places,
)


def offsets(*places: tuple[str, int]) -> ConsumerOffsets:
    return ConsumerOffsets("shop", [ReachedOffset(*place, 42) for place in places])


class Looks:
    """Return the result of each lookup in turn; the last result repeats."""

    def __init__(self, *found: Partitions) -> None:
        self._found = list(found)
        self.asked: list[Collection[str]] = []

    async def __call__(self, topics: Collection[str]) -> Partitions:
        self.asked.append(topics)
        return self._found.pop(0) if len(self._found) > 1 else self._found[0]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (("carts", 0), "topic 'carts' does not exist"),
        (("orders", 2), "topic 'orders' has no partition 2; its partitions are 0 to 1"),
    ],
)
async def test_a_missing_partition_is_named(place: tuple[str, int], reason: str) -> None:
    with pytest.raises(RestError) as failure:
        await check_places(offsets(("orders", 1), place), Looks({"orders": [0, 1]}), within_s=0)
    assert (failure.value.status, failure.value.code) == (404, 40403)
    assert str(failure.value) == f"nothing was written: offsets of group 'shop': {reason}"


async def test_a_new_topic_is_waited_for() -> None:
    looks = Looks({}, {"carts": [0]})
    await check_places(offsets(("carts", 0)), looks)
    assert looks.asked == [["carts"], ["carts"]]


async def test_a_topic_without_permission_is_rejected() -> None:
    async def refuse(topics: Collection[str]) -> Partitions:
        raise TopicAuthorizationFailed("topic 'carts' cannot be looked up")

    with pytest.raises(RestError, match="offsets of group 'shop'") as failure:
        await check_places(offsets(("carts", 0)), refuse)
    assert failure.value.status == 403
