"""How an input names the records of its rows, and how it is read when some may be gone."""

from dataclasses import replace

import pytest

from headrace.pipelines.model import Place, Source
from headrace.pipelines.running.kept_records import PLACE
from headrace.pipelines.running.records_again import going_on, place_columns

SOURCE = Source("events", Place("pipeline.toml", 1), format="json", schema="id LONG")


def test_a_topic_names_its_records_with_the_prefix_of_its_options() -> None:
    source = replace(SOURCE, options={"metadataprefix": "k_"})
    assert place_columns(source) == ("k_topic", "k_partition", "k_offset")


@pytest.mark.parametrize(
    "source",
    [
        None,
        SOURCE,
        replace(SOURCE, format="bytes", options={"metadataPrefix": "k_"}),
        replace(SOURCE, connector="kafka", options={"metadataPrefix": "k_"}),
    ],
)
def test_tables_and_topics_without_a_prefix_name_records_plainly(source: Source | None) -> None:
    assert place_columns(source) == PLACE


@pytest.mark.parametrize("name", ["failOnDataLoss", "failondataloss"])
def test_lost_records_do_not_stop_whoever_finds_out_which_they_are(name: str) -> None:
    source = replace(SOURCE, options={name: "true", "mode": "x"})
    assert going_on(source).options == {"failOnDataLoss": "false", "mode": "x"}
