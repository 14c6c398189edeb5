"""What a query's progress says of how far a flow is behind."""

import json
from typing import Any

from headrace.pipelines.running.running_flow import lags_of


def source(latest: Any, end: Any) -> dict[str, Any]:
    return {"latestOffset": latest, "endOffset": end}


def test_each_partition_is_behind_by_what_was_not_read_of_it() -> None:
    """Sources tell their offsets as objects or as texts; a new partition was not read at all."""
    latest, end = {"orders": {"0": 10, "1": 4}}, {"orders": {"0": 7}}
    progress = {"sources": [source(json.dumps(latest), json.dumps(end))]}
    assert lags_of(progress) == {"orders": {"0": 3, "1": 4}}


def test_the_topics_of_several_sources_are_told_together() -> None:
    progress = {"sources": [source({"a": {"0": 1}}, {"a": {"0": 1}}), source({"b": {"0": 2}}, {})]}
    assert lags_of(progress) == {"a": {"0": 0}, "b": {"0": 2}}


def test_tables_and_what_has_not_begun_are_behind_by_nothing_known() -> None:
    assert lags_of({"sources": [source({"version": 3}, {"version": 2}), source(None, None)]}) == {}
