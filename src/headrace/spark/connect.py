"""Sessions of Spark Connect, whose driver is a remote server."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_connect(spark: "SparkSession") -> bool:
    """Return whether a session is a client's, without SparkContext, scheduler and plans."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_connect_url(master: str) -> bool:
    """Return whether a master is a Spark Connect server."""
    return master.startswith("sc://")
