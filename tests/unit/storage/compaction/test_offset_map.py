"""The map from keys to their last offsets, as a dictionary and as a table."""

import pytest

from headrace.storage.compaction.offset_map import BYTES_PER_PLACE, OffsetMap


@pytest.fixture(params=[0, 7, 10_000], ids=["table", "moves", "dictionary"])
def offsets(request: pytest.FixtureRequest) -> OffsetMap:
    return OffsetMap(few_keys_max=request.param)


def test_the_last_offset_of_each_key_is_kept(offsets: OffsetMap) -> None:
    for offset in range(3_000):
        offsets.put(b"key %d" % (offset % 1_000), offset)
    assert [offsets.get(b"key %d" % key) for key in range(1_000)] == list(range(2_000, 3_000))
    assert len(offsets) == 1_000


def test_an_unknown_key_has_no_offset(offsets: OffsetMap) -> None:
    assert offsets.get(b"nobody") == -1
    offsets.put(b"somebody", 5)
    assert offsets.get(b"nobody") == -1


def test_the_empty_key_is_a_key(offsets: OffsetMap) -> None:
    offsets.put(b"", 0)
    assert offsets.get(b"") == 0


def test_a_lookup_finds_the_same_offsets_as_get(offsets: OffsetMap) -> None:
    for offset in range(100):
        offsets.put(b"key %d" % offset, offset)
    find = offsets.lookup()
    assert all(find(b"key %d" % offset) == offset for offset in range(100))
    assert find(b"nobody") in (None, -1)


def test_many_keys_cost_little_each() -> None:
    offsets = OffsetMap()
    for offset in range(30_000):
        offsets.put(b"a key that is quite long: %d" % offset, offset)
    assert offsets.size_bytes / len(offsets) <= BYTES_PER_PLACE / 0.7
