"""Dead letters: what they say, and how they are packed."""

from headrace.protocol.batches import Record, read_header, records_of
from headrace.shares.dead_letters import PREFIX, Origin, dead_letter, letter_batches

ORIGIN = Origin("billing", "orders", 3)
RECORD = Record(41, 5, b"key", b"value", (("trace", b"7"), (PREFIX + "topic", b"earlier")))


def test_a_dead_letter_names_group_record_deliveries_and_reason() -> None:
    letter = dead_letter(ORIGIN, 41, 2, 5, 99, None)
    assert letter.timestamp == 99
    assert (letter.key, letter.value) == (None, None)
    told = dict(letter.headers)
    assert told.pop(PREFIX + "message") == b"The record was rejected by a member of the group."
    assert told == {
        PREFIX + "topic": b"orders",
        PREFIX + "partition": b"3",
        PREFIX + "offset": b"41",
        PREFIX + "group": b"billing",
        PREFIX + "delivery.count": b"2",
    }


def test_a_record_without_deliveries_left_names_the_reason() -> None:
    told = dict(dead_letter(ORIGIN, 41, 5, 5, 99, None).headers)
    assert told[PREFIX + "message"] == b"The delivery count limit was reached."


def test_a_copy_keeps_the_records_headers_but_not_those_of_an_earlier_death() -> None:
    letter = dead_letter(ORIGIN, 41, 1, 5, 99, RECORD)
    assert (letter.key, letter.value) == (b"key", b"value")
    assert letter.headers[0] == ("trace", b"7")
    assert [content for name, content in letter.headers if name == PREFIX + "topic"] == [b"orders"]


def test_batches_are_no_larger_than_the_topic_takes() -> None:
    letters = [
        dead_letter(ORIGIN, offset, 1, 5, 99, Record(offset, 1, None, b"x" * 400))
        for offset in range(10)
    ]
    batches = list(letter_batches(letters, 2_000))
    assert len(batches) > 1
    assert all(len(batch) <= 2_000 for batch in batches)
    assert sum(read_header(batch).count for batch in batches) == 10


def test_a_letter_too_large_for_the_topic_is_written_without_its_copy() -> None:
    large = dead_letter(ORIGIN, 1, 1, 5, 99, Record(1, 1, b"k", b"x" * 5_000, (("h", b"v"),)))
    (batch,) = letter_batches([large], 1_000)
    (record,) = records_of(batch)
    assert (record.key, record.value) == (None, None)
    assert all(name.startswith(PREFIX) for name, _ in record.headers)
