"""What brokers are asked before a pipeline runs, and what is said when they do not answer."""

from pathlib import Path

import pytest

from headrace.pipelines.analysing.topic_checks import (
    TopicReport,
    check_brokers,
    check_topics,
    clusters_of,
)
from tests.declared_pipelines import SETTINGS, load_folder

TABLE = "CREATE STREAMING TABLE raw.x AS SELECT * FROM STREAM(sources.orders);\n"
NOBODY = SETTINGS.replace('"shop"', '"shop"\nbootstrap = "127.0.0.1:1"')
ELSEWHERE = """
[pipeline]
name = "shop"
bootstrap = "127.0.0.1:1"
[sources.orders]
[sources.refunds]
[sources.visits.options]
"kafka.bootstrap.servers" = "127.0.0.1:2"
"Kafka.sasl.username" = "visitor"
"""


def test_a_broker_that_does_not_answer_is_a_problem(tmp_path: Path) -> None:
    found = check_topics(load_folder(tmp_path, {"a.sql": TABLE}, NOBODY), timeout_s=0.5)
    assert found.notes == ()
    (problem,) = found.problems
    assert "topics were not checked: cannot reach 127.0.0.1:1" in problem.text
    assert "--offline" in problem.text


def test_who_names_no_topic_needs_no_broker(tmp_path: Path) -> None:
    settings = '[pipeline]\nname = "shop"\nbootstrap = "127.0.0.1:1"\n'
    view = "CREATE MATERIALIZED VIEW refined.one AS SELECT 1 AS one;"
    pipeline = load_folder(tmp_path, {"a.sql": view}, settings)
    assert check_topics(pipeline) == TopicReport()
    check_brokers(pipeline)


def test_every_cluster_is_asked_for_the_sources_that_are_read_from_it(tmp_path: Path) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": TABLE}, ELSEWHERE)
    own, other = clusters_of(pipeline)
    assert [source.name for source in own.sources] == ["orders", "refunds"]
    assert [source.name for source in other.sources] == ["visits"]
    assert other.properties == {"bootstrap.servers": "127.0.0.1:2", "sasl.username": "visitor"}


def test_every_cluster_that_does_not_answer_is_a_problem(tmp_path: Path) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": TABLE}, ELSEWHERE)
    own, other = (problem.text for problem in check_topics(pipeline, timeout_s=0.5).problems)
    assert "127.0.0.1:1" in own
    assert "127.0.0.1:2" in other


@pytest.mark.parametrize("connector", ["kafka", "headrace"])
def test_a_login_that_only_java_knows_is_a_note_if_only_java_uses_it(
    tmp_path: Path, connector: str
) -> None:
    settings = ELSEWHERE.replace("Kafka.sasl.username", "kafka.ssl.truststore.location")
    head = "[sources.visits.options]"
    settings = settings.replace(head, f'[sources.visits]\nconnector = "{connector}"\n{head}')
    found = check_topics(load_folder(tmp_path, {"a.sql": TABLE}, settings), timeout_s=0.5)
    told = [*found.notes, *(problem.text for problem in found.problems[1:])]
    assert len(found.notes) == (connector == "kafka")
    assert ["ssl.truststore.location" in text for text in told] == [True]
