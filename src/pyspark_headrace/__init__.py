"""What Spark finds by itself: `format("headrace")` without registration.

Spark imports every top-level module named `pyspark_*` and takes its `DefaultSource`.
"""

from headrace.spark.source.source import DefaultSource

__all__ = ["DefaultSource"]
