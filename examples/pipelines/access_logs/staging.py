"""Lines parsed into columns; malformed lines go to quarantine.

They also go to a topic of dead letters, for the operators of the servers.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipelines import read_stream, table

COMBINED = (
    r'^(\S+) \S+ \S+ \[([^\]]+)\] "([A-Z]+) (\S+) HTTP/[\d.]+" (\d{3}) (\d+|-) "[^"]*" "([^"]*)"$'
)
"""Address, time, method, path, status, bytes and agent in the combined log format."""


@table(
    name="staging.access_log",
    comment="One row for each request",
    dead_letter_topic="access-log-refused",
)
def access_log() -> DataFrame:
    line = F.col("value").cast("string")

    def part(number: int) -> Column:
        return F.regexp_extract(line, COMBINED, number)

    time = F.try_to_timestamp(part(2), F.lit("dd/MMM/yyyy:HH:mm:ss Z"))
    return read_stream("raw.access_log").select(
        F.col("key").cast("string").alias("line_id"),
        part(1).alias("ip"),
        time.alias("time"),
        part(3).alias("method"),
        part(4).alias("path"),
        part(5).try_cast("int").alias("status"),
        part(6).try_cast("bigint").alias("bytes"),
        part(7).alias("agent"),
        F.when(time.isNull(), "not a line in the combined log format").alias("_error"),
        F.col("value").alias("_payload"),
        "topic",
        "partition",
        "offset",
    )
