"""Origins of a query's columns, as recorded in their metadata."""

from pyspark.sql.types import LongType, StringType, StructField, StructType

from headrace.pipelines.analysing.origins import origins_of, shared, with_origins

COLUMNS = StructType([StructField("topic", StringType()), StructField("id", LongType())])


def test_origins_are_noted_on_the_columns_that_are_there() -> None:
    known = {"topic": "record.topic", "timestamp": "record.timestamp"}
    assert origins_of(with_origins(COLUMNS, known)) == {"topic": "record.topic"}


def test_a_column_has_one_origin_at_a_time() -> None:
    before = with_origins(COLUMNS, {"topic": "record.topic"})
    assert origins_of(with_origins(before, {"id": "raw.t.id"})) == {"id": "raw.t.id"}


def test_only_origins_shared_by_all_flows_count() -> None:
    flows = [{"a": "record.topic", "b": "record.timestamp"}, {"a": "record.topic", "b": "raw.t.b"}]
    assert shared(flows) == {"a": "record.topic"}
