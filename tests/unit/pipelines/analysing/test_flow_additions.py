"""Columns added to flows, as far as Spark analyses the longer query as expected."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from headrace.pipelines.analysing.flow_additions import FlowAsRun, keeping_bytes
from headrace.pipelines.model import Query
from tests.builders.declared_pipelines import load_folder

RULE = "(CONSTRAINT c EXPECT (id > 1) ON VIOLATION QUARANTINE ROW)"


@dataclass(frozen=True)
class Frame:
    """A frame that has only columns."""

    columns: list[str]


def with_two_columns(_: Query) -> Any:
    return Frame(["id", "_payload"])


def refusing(_: Query) -> Any:
    raise AnalysisException("an aggregate")


def kept(place: Path, query: str, brought: list[str], rule: str, evaluate: Any) -> FlowAsRun:
    sql = f"CREATE STREAMING TABLE staging.x {rule} AS {query};"
    pipeline = load_folder(place, {"a.sql": sql})
    made = FlowAsRun(pipeline.flows[0], Frame(brought))  # type: ignore[arg-type]
    return keeping_bytes(made, pipeline.sources["orders"], pipeline, evaluate, has_side_output=True)


def test_a_flow_of_single_records_gets_their_bytes_for_quarantine(tmp_path: Path) -> None:
    query = "SELECT id FROM STREAM(sources.orders)"
    found = kept(tmp_path, query, ["id"], RULE, with_two_columns)
    assert found.flow.query == "SELECT id, _payload FROM STREAM(sources.orders)"
    assert (found.flow.keeps_payloads, found.frame.columns) == (True, ["id", "_payload"])


@pytest.mark.parametrize(
    ("query", "rule", "evaluate"),
    [
        ("SELECT id FROM STREAM(sources.orders)", "", with_two_columns),
        ("SELECT count(*) AS id FROM STREAM(sources.orders)", RULE, refusing),
        ("SELECT id, id AS n FROM STREAM(sources.orders)", RULE, lambda _: Frame(["id", "n"])),
        ("SELECT length(_payload) AS id FROM STREAM(sources.orders)", RULE, with_two_columns),
    ],
)
def test_a_flow_is_unchanged_without_original_bytes(
    tmp_path: Path, query: str, rule: str, evaluate: Any
) -> None:
    found = kept(tmp_path, query, ["id"], rule, evaluate)
    assert (found.flow.query, found.flow.keeps_payloads) == (query, False)


def test_bytes_selected_by_star_are_requested_from_the_source(tmp_path: Path) -> None:
    query = "SELECT * FROM STREAM(sources.orders)"
    found = kept(tmp_path, query, ["id", "_payload"], RULE, refusing)
    assert (found.flow.query, found.flow.keeps_payloads) == (query, True)
