"""Operational metrics of services by minute, and a report about those that miss their aim."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipelines import (
    between,
    expect_or_quarantine,
    materialized_view,
    merged_view,
    not_null,
    read,
    read_stream,
    table,
)

AIM = 0.97
"""So much of all requests must succeed."""


@table(name="staging.requests")
@expect_or_quarantine("complete", not_null("request_id", "service", "ended_at"))
@expect_or_quarantine("plausible", between("took_ms", 0, 60_000))
def requests() -> DataFrame:
    return read_stream("sources.requests")


@merged_view(
    name="refined.service_minutes",
    comment="What each service did in each minute; a request that is told twice counts once",
    merge={"requests": "sum", "failures": "sum", "took_ms": "sum", "slowest_ms": "max"},
    deduplicate_by=["request_id"],
)
def service_minutes() -> DataFrame:
    return (
        read_stream("staging.requests")
        .groupBy("service", F.date_trunc("minute", "ended_at").alias("minute"))
        .agg(
            F.count("*").alias("requests"),
            F.count_if(F.col("_category") == "failure").alias("failures"),
            F.sum("took_ms").alias("took_ms"),
            F.max("took_ms").alias("slowest_ms"),
        )
    )


@materialized_view(name="refined.missed_aims")
def missed_aims() -> DataFrame:
    told_once = read("staging.requests").dropDuplicates(["request_id"])
    succeeded = 1 - F.count_if(F.col("status") >= 500) / F.count("*")
    return (
        told_once.groupBy("service")
        .agg(F.count("*").alias("requests"), F.round(succeeded, 4).alias("succeeded"))
        .where(F.col("succeeded") < AIM)
    )
