"""Sessions of Spark Connect, whose driver is a server elsewhere."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_connect(spark: "SparkSession") -> bool:
    """Whether the session is a client's, which has no SparkContext, no scheduler and no plans."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_connect_url(master: str) -> bool:
    """Whether a master is a server of Spark Connect."""
    return master.startswith("sc://")
