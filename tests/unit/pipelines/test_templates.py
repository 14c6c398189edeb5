"""The pipeline that `init` makes."""

from pathlib import Path

import pytest

from headrace.pipelines.analysing.checking import check
from headrace.pipelines.problems import PipelineError
from headrace.pipelines.project import load
from headrace.pipelines.templates import write_template


def test_the_template_loads_without_problems(tmp_path: Path) -> None:
    written = write_template(tmp_path / "my-shop")
    assert {path.name for path in written} >= {"pipeline.toml", "orders.sql", "test_orders.py"}
    pipeline = load(tmp_path / "my-shop", environment={})
    assert pipeline.settings.name == "my-shop"
    assert set(pipeline.datasets) == {"staging.orders", "trusted.orders", "refined.revenue_by_day"}
    assert check(pipeline).problems == ()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "mine").write_text("precious")
    with pytest.raises(PipelineError, match="not empty"):
        write_template(tmp_path / "shop")
    assert [path.name for path in (tmp_path / "shop").iterdir()] == ["mine"]


def test_an_invalid_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="not a valid name of a pipeline"):
        write_template(tmp_path / "9 lives")
