"""Operational metrics of services by minute, and a report about those that miss their aim.

Raw records are kept unchanged. All other tables are computed from them, so a mistake in `parsed` or
behind it can be fixed for the past as well: the batch layer recomputes the metrics from the raw
table.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipelines import (
    expect_or_quarantine,
    materialized_view,
    merged_view,
    read,
    read_stream,
    table,
    temporary_view,
)

REQUEST = "request_id STRING, service STRING, status INT, took_ms INT, ended_at TIMESTAMP"
COMPLETE = "request_id IS NOT NULL AND service IS NOT NULL AND ended_at IS NOT NULL"
PLAUSIBLE = "took_ms BETWEEN 0 AND 60000"
AIM = 0.97
"""The share of requests that must succeed."""


@table(name="raw.requests", comment="Reports of services, unchanged; the key is the request")
def landed() -> DataFrame:
    return read_stream("sources.requests")


@temporary_view
def parsed() -> DataFrame:
    request = F.from_json(F.col("value").cast("string"), REQUEST).alias("request")
    landed = read_stream("raw.requests").select(request, "*")
    return landed.select("request.*", "topic", "partition", "offset", "value")


@table(name="staging.requests")
@expect_or_quarantine("complete", COMPLETE)
@expect_or_quarantine("plausible", PLAUSIBLE)
def requests() -> DataFrame:
    return read_stream("parsed").withColumnRenamed("value", "_payload")


@merged_view(
    name="refined.service_minutes",
    comment="What each service did in each minute; a request that is reported twice counts once",
    merge={"requests": "sum", "failures": "sum", "took_ms": "sum", "slowest_ms": "max"},
    deduplicate_by=["key"],
)
def service_minutes() -> DataFrame:
    return (
        read_stream("parsed")
        .where(f"{COMPLETE} AND {PLAUSIBLE}")
        .groupBy("service", F.date_trunc("minute", "ended_at").alias("minute"))
        .agg(
            F.count("*").alias("requests"),
            F.count_if(F.col("status") >= 500).alias("failures"),
            F.sum("took_ms").alias("took_ms"),
            F.max("took_ms").alias("slowest_ms"),
        )
    )


@materialized_view(name="refined.missed_aims")
def missed_aims() -> DataFrame:
    distinct = read("staging.requests").dropDuplicates(["request_id"])
    succeeded = 1 - F.count_if(F.col("status") >= 500) / F.count("*")
    return (
        distinct.groupBy("service")
        .agg(F.count("*").alias("requests"), F.round(succeeded, 4).alias("succeeded"))
        .where(F.col("succeeded") < AIM)
    )
