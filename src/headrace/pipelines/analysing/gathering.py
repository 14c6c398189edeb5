"""Whether a flow's rows are made of several records: totals, joins of streams, each key once.

Such a flow remembers records from batch to batch. Some records alone, run through its query beside
it, would come to rows that are true of these records only.
"""

from typing import TYPE_CHECKING, Any

from headrace.spark.connect import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GATHERING = {
    *("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct"),
    *("FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState"),
    *("TransformWithState", "TransformWithStateInPySpark", "GlobalLimit"),
}
_JOIN = "Join"


def gathers(frame: "DataFrame") -> bool:
    """Whether a streaming frame keeps state; a Connect session shows no plan to tell it by."""
    if is_connect(frame.sparkSession):
        return False
    return _gathers(frame._jdf.queryExecution().analyzed())


def _gathers(node: Any) -> bool:
    if not node.isStreaming():
        return False  # What is computed of tables at rest is the same for any records.
    children = [node.children().apply(number) for number in range(node.children().size())]
    kind = node.getClass().getSimpleName()
    if kind in _GATHERING or (kind == _JOIN and all(child.isStreaming() for child in children)):
        return True
    return any(map(_gathers, children))
