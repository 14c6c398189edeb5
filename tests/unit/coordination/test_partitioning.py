"""Which partition a key lives in: numbers from Kafka's own code."""

import pytest

from headrace.coordination.partitioning import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        ("g1", 3242),
        ("hello", 99162322),
        ("polygenelubricants", -(1 << 31)),
        ("ü🌊", 2015306),
    ],
)
def test_the_hash_is_javas(text: str, number: int) -> None:
    assert java_hash(text) == number


def test_a_partition_is_the_absolute_hash_modulo_their_number() -> None:
    """CON-1: so that Kafka's tools and a Kafka that takes over look in the same place."""
    assert partition_for("hello", 50) == 22
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("console-consumer-91", 50) == abs(java_hash("console-consumer-91")) % 50
