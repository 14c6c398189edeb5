"""Checks of tables and checkpoints before anything runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from headrace.lake.applied_changes import history_name
from headrace.lake.commit_log import Token
from headrace.lake.lineage import Lineage
from headrace.pipelines.running import pipeline_run
from headrace.pipelines.running.errors import StateDisagrees
from headrace.pipelines.running.pipeline_run import PipelineRun
from tests.builders.declared_pipelines import SETTINGS, load_folder

NAME = "trusted.orders"
CHANGES = """
CREATE STREAMING TABLE trusted.orders;
CREATE FLOW f AS AUTO CDC INTO trusted.orders FROM STREAM(sources.orders) KEYS (id) SEQUENCE BY ts;
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PipelineRun:
    """A flow of changes, with an empty target and history, and without a checkpoint."""
    settings = SETTINGS.replace('"shop"', f'"shop"\nlake = "{tmp_path / "lake"}"')
    # Spark is asked for what queries read, and for nothing else of this.
    reads = SimpleNamespace(reads={"f": {"sources.orders"}})
    monkeypatch.setattr(pipeline_run, "Preparation", lambda *given: reads)
    run = PipelineRun(cast(Any, None), load_folder(tmp_path, {"a.sql": CHANGES}, settings))
    for name in (NAME, history_name(NAME)):
        run.lake.create(name, pa.schema([("id", pa.int64())]), pipeline="shop")
    return run


@pytest.mark.parametrize("name", [NAME, history_name(NAME)])
def test_a_flow_without_its_checkpoint_is_refused_if_either_table_has_its_rows(
    run: PipelineRun, name: str
) -> None:
    (flow,) = run.pipeline.flows
    run.lake.table(name).append([], Token("lost", 0), Lineage(pipeline="shop", flow="f"))
    for _ in range(2):
        with pytest.raises(StateDisagrees, match=f"^{name} has rows of the flow f"):
            run.folders.check(flow, ["f"])
    assert not run.folders.of(flow).is_known


@pytest.mark.parametrize("name", [NAME, history_name(NAME)])
def test_a_renamed_flow_is_refused_if_a_table_has_rows_of_the_old_name(
    run: PipelineRun, name: str
) -> None:
    (flow,) = run.pipeline.flows
    former = run.state.flow("e", 1)
    run.lake.table(name).append([], Token(former.writer(), 0))
    offsets = former.checkpoint / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text('v1\n{}\n{"orders": {"0": 5}}')
    with pytest.raises(StateDisagrees, match=f"^{name} has rows of orders from the flow e"):
        run.folders.check(flow, ["f"])


def test_a_new_flow_into_new_tables_may_begin(run: PipelineRun) -> None:
    (flow,) = run.pipeline.flows
    run.folders.check(flow, ["f"])
    assert run.folders.of(flow).is_known
