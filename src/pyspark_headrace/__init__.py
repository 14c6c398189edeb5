"""The Spark data source `format("headrace")`, available without registration.

Spark imports every top-level module named `pyspark_*` and takes its `DefaultSource`.
"""

from headrace.spark.source.source import DefaultSource

__all__ = ["DefaultSource"]
