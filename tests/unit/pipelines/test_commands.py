"""Pipelines that one driver runs together: of different names on one Spark."""

from pathlib import Path

import pytest

from headrace.client.addresses import BrokerUnreachable
from headrace.pipelines.commands import Overrides, load_all, run, status
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.running.state.folders import PipelineState
from headrace.pipelines.status import FlowStatus, PipelineStatus, ViewStatus


def folder(place: Path, name: str, master: str = "local[1]") -> Path:
    place.mkdir()
    settings = f'[pipeline]\nname = "{name}"\nmaster = "{master}"\n[sources.orders]\n'
    (place / "pipeline.toml").write_text(settings, encoding="utf-8")
    table = "CREATE STREAMING TABLE staging.orders AS SELECT value FROM STREAM(sources.orders);"
    (place / "orders.sql").write_text(table, encoding="utf-8")
    return place


def test_two_pipelines_of_one_name_are_refused(tmp_path: Path) -> None:
    folders = [folder(tmp_path / "one", "shop"), folder(tmp_path / "two", "shop")]
    with pytest.raises(PipelineError, match="two of these pipelines have one name: shop, shop"):
        load_all(folders, Overrides())


def test_pipelines_on_several_sparks_run_together_only_on_one_that_is_chosen(
    tmp_path: Path,
) -> None:
    folders = [
        folder(tmp_path / "one", "shop"),
        folder(tmp_path / "two", "web", master="spark://host:7077"),
    ]
    with pytest.raises(PipelineError, match=r"several Spark masters .*--master"):
        load_all(folders, Overrides())
    together = load_all(folders, Overrides(master="local[3]"))
    assert {one.settings.name: one.settings.master for one in together} == {
        "shop": "local[3]",
        "web": "local[3]",
    }


def test_run_once_without_brokers_fails_before_spark_is_started(tmp_path: Path) -> None:
    """Starting it takes seconds, and then it would try again for a minute."""
    place = folder(tmp_path / "one", "shop")
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"):
        run(
            [place],
            is_once=True,
            overrides=Overrides(bootstrap="127.0.0.1:1", lake=str(tmp_path / "lake")),
            starting=lambda: pytest.fail("Spark was started"),
        )


def test_flows_and_views_of_a_driver_that_was_killed_do_not_run(tmp_path: Path) -> None:
    place, lake = folder(tmp_path / "one", "shop"), tmp_path / "lake"
    soon = "2026-03-01T12:00:00Z"
    flows = tuple(
        FlowStatus(flow=state, state=state, next_at=soon if state == "running" else None)
        for state in ("running", "failed")
    )
    views = (ViewStatus(view="refined.x", next_at=soon),)
    told = PipelineStatus(pipeline="shop", state="running", flows=flows, views=views)
    PipelineState.of(lake, "shop").write_status(told)
    (found,) = status([place], Overrides(lake=str(lake)))
    assert (found.state, [flow.state for flow in found.flows]) == ("died", ["died", "failed"])
    assert [part.next_at for part in found.parts] == [None] * 3
