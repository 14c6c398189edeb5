"""Topics as options of Spark's readers."""

from headrace.pipelines.sources import span_options


def test_a_batch_between_offsets_reads_no_more_wherever_its_source_begins() -> None:
    given = {
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "StartingTimestamp": "1700000000000",
        "format": "json",
    }
    found = span_options(given, {"orders": {"1": (3, 9)}, "prices": {}})
    assert found == {
        "format": "json",
        "assign": '{"orders": [1]}',
        "startingOffsets": '{"orders": {"1": 3}}',
        "endingOffsets": '{"orders": {"1": 9}}',
    }
