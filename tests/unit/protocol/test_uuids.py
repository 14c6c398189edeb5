"""UUIDs as Kafka prints and draws them."""

import pytest

from headrace.protocol.metadata_topic import METADATA_TOPIC_ID
from headrace.protocol.uuids import ZERO, from_text, random_uuid, to_text


def test_text_is_kafkas() -> None:
    assert to_text(ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert to_text(bytes.fromhex("fbefbeff")[:4] + bytes(12)).startswith("----_w")


@pytest.mark.parametrize(
    "text", ["", "AAAA", "A" * 23, "A" * 21 + "=", "A" * 21 + "ß", "A" * 21 + "+"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a UUID"):
        from_text(text)


def test_a_random_uuid_comes_back_from_its_text_and_starts_with_no_dash() -> None:
    drawn = {random_uuid() for _ in range(2_000)}
    assert len(drawn) == 2_000
    for uuid in drawn:
        text = to_text(uuid)
        assert from_text(text) == uuid
        assert not text.startswith("-")
        assert uuid[6] >> 4 == 4
