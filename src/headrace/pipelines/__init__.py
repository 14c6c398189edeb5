"""Pipelines on Spark: the declarations of a pipeline's files, and their runner.

    from headrace import pipelines as dp

    @dp.table(name="staging.orders")
    @dp.expect_or_quarantine("has an id", dp.not_null("id"))
    def orders():
        return dp.read_stream("raw.orders").selectExpr("id", "price")

The names are imported on first use; importing them does not need Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.pipelines.declaring.declarations import append_flow as append_flow
    from headrace.pipelines.declaring.declarations import (
        create_auto_cdc_flow as create_auto_cdc_flow,
    )
    from headrace.pipelines.declaring.declarations import create_sink as create_sink
    from headrace.pipelines.declaring.declarations import (
        create_streaming_table as create_streaming_table,
    )
    from headrace.pipelines.declaring.declarations import materialized_view as materialized_view
    from headrace.pipelines.declaring.declarations import merged_view as merged_view
    from headrace.pipelines.declaring.declarations import table as table
    from headrace.pipelines.declaring.declarations import temporary_view as temporary_view
    from headrace.pipelines.declaring.rules import between as between
    from headrace.pipelines.declaring.rules import expect as expect
    from headrace.pipelines.declaring.rules import expect_all as expect_all
    from headrace.pipelines.declaring.rules import expect_all_or_drop as expect_all_or_drop
    from headrace.pipelines.declaring.rules import expect_all_or_fail as expect_all_or_fail
    from headrace.pipelines.declaring.rules import (
        expect_all_or_quarantine as expect_all_or_quarantine,
    )
    from headrace.pipelines.declaring.rules import expect_fresh as expect_fresh
    from headrace.pipelines.declaring.rules import expect_or_drop as expect_or_drop
    from headrace.pipelines.declaring.rules import expect_or_fail as expect_or_fail
    from headrace.pipelines.declaring.rules import expect_or_quarantine as expect_or_quarantine
    from headrace.pipelines.declaring.rules import expect_rows as expect_rows
    from headrace.pipelines.declaring.rules import expect_unique as expect_unique
    from headrace.pipelines.declaring.rules import fresh as fresh
    from headrace.pipelines.declaring.rules import matches as matches
    from headrace.pipelines.declaring.rules import not_null as not_null
    from headrace.pipelines.declaring.rules import of_batch as of_batch
    from headrace.pipelines.declaring.rules import rows as rows
    from headrace.pipelines.declaring.rules import unique as unique
    from headrace.pipelines.model import Pipeline as Pipeline
    from headrace.pipelines.problems import PipelineError as PipelineError
    from headrace.pipelines.project import load as load
    from headrace.pipelines.queries.resolving import read as read
    from headrace.pipelines.queries.resolving import read_stream as read_stream
    from headrace.pipelines.queries.resolving import spark as spark

_NAMES = {
    "declaring.declarations": (
        "append_flow",
        "create_auto_cdc_flow",
        "create_sink",
        "create_streaming_table",
        "materialized_view",
        "merged_view",
        "table",
        "temporary_view",
    ),
    "model": ("Pipeline",),
    "problems": ("PipelineError",),
    "project": ("load",),
    "queries.resolving": ("read", "read_stream", "spark"),
    "declaring.rules": (
        "between",
        "expect",
        "expect_all",
        "expect_all_or_drop",
        "expect_all_or_fail",
        "expect_all_or_quarantine",
        "expect_fresh",
        "expect_or_drop",
        "expect_or_fail",
        "expect_or_quarantine",
        "expect_rows",
        "expect_unique",
        "fresh",
        "matches",
        "not_null",
        "of_batch",
        "rows",
        "unique",
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)  # pyright: ignore


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
