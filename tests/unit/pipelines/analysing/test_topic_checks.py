"""Requests to brokers before a pipeline runs, and the errors if they do not answer."""

from pathlib import Path

import pytest

from headrace.client.addresses import BrokerUnreachable
from headrace.errors import HeadraceError, SaslAuthenticationFailed
from headrace.pipelines.analysing import topic_checks
from headrace.pipelines.analysing.topic_checks import (
    TopicReport,
    check_brokers,
    check_topics,
    clusters_of,
)
from tests.builders.declared_pipelines import SETTINGS, load_folder

FLOWS = """
CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);
CREATE TEMPORARY VIEW visits AS SELECT * FROM STREAM(sources.visits);
CREATE STREAMING TABLE raw.visits AS SELECT * FROM STREAM(visits);
CREATE STREAMING TABLE staging.orders DEAD LETTER TOPIC 'letters'
    AS SELECT * FROM STREAM(raw.orders);
"""
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


def test_a_pipeline_without_topics_needs_no_broker(tmp_path: Path) -> None:
    settings = '[pipeline]\nname = "shop"\nbootstrap = "127.0.0.1:1"\n'
    view = "CREATE MATERIALIZED VIEW refined.one AS SELECT 1 AS one;"
    pipeline = load_folder(tmp_path, {"a.sql": view}, settings)
    assert check_topics(pipeline) == TopicReport()
    check_brokers(pipeline)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The brokers that were asked; of the clusters in ELSEWHERE only the first one answers."""
    addresses: list[str] = []

    def check_reachable(bootstrap: str, *_: object) -> None:
        addresses.append(bootstrap)
        if bootstrap == "127.0.0.1:2":
            raise BrokerUnreachable(f"cannot reach {bootstrap}")

    monkeypatch.setattr(topic_checks, "check_reachable", check_reachable)
    return addresses


def test_an_unreachable_cluster_is_reported_with_its_sources(
    tmp_path: Path, asked: list[str]
) -> None:
    """A run with an end would otherwise retry for minutes, and end with a part."""
    pipeline = load_folder(tmp_path, {"a.sql": FLOWS}, ELSEWHERE)
    with pytest.raises(BrokerUnreachable, match=r"reach 127\.0\.0\.1:2 \(for sources\.visits\)$"):
        check_brokers(pipeline)
    assert asked == ["127.0.0.1:1", "127.0.0.1:2"]


@pytest.mark.parametrize(
    ("target", "addresses"),
    [("raw.orders", ["127.0.0.1:1"]), ("staging.orders", ["127.0.0.1:1"]), ("refined.n", [])],
)
def test_only_clusters_that_a_table_needs_must_answer_for_it(
    target: str, addresses: list[str], tmp_path: Path, asked: list[str]
) -> None:
    view = "CREATE MATERIALIZED VIEW refined.n AS SELECT count(*) AS n FROM raw.visits;"
    check_brokers(load_folder(tmp_path, {"a.sql": FLOWS + view}, ELSEWHERE), [target])
    assert asked == addresses


def test_a_cluster_without_sources_need_not_answer(tmp_path: Path, asked: list[str]) -> None:
    check_brokers(load_folder(tmp_path, {"a.sql": TABLE}, ELSEWHERE))
    assert asked == ["127.0.0.1:1"]


def test_all_unreachable_clusters_are_reported_at_once(tmp_path: Path) -> None:
    pipeline = load_folder(tmp_path, {"a.sql": FLOWS}, ELSEWHERE)
    with pytest.raises(BrokerUnreachable) as raised:
        check_brokers(pipeline, timeout_s=0.5)
    own, other = str(raised.value).split("; ")
    assert own.endswith("(for sources.orders and the topic letters)")
    assert other.endswith("(for sources.visits)")


def test_different_failures_of_clusters_are_reported_without_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice for a broker that is down does not help with a rejected login."""

    def check_reachable(bootstrap: str, *_: object) -> None:
        is_own = bootstrap == "127.0.0.1:1"
        raise BrokerUnreachable("down") if is_own else SaslAuthenticationFailed("refused")

    monkeypatch.setattr(topic_checks, "check_reachable", check_reachable)
    with pytest.raises(HeadraceError) as raised:
        check_brokers(load_folder(tmp_path, {"a.sql": FLOWS}, ELSEWHERE))
    assert type(raised.value) is HeadraceError
    own, other = "down (for sources.orders and the topic letters)", "refused (for sources.visits)"
    assert str(raised.value) == f"{own}; {other}"


def test_every_source_is_checked_at_its_own_cluster(tmp_path: Path) -> None:
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
def test_a_login_for_java_is_a_note_if_only_java_uses_it(tmp_path: Path, connector: str) -> None:
    settings = ELSEWHERE.replace("Kafka.sasl.username", "kafka.ssl.truststore.location")
    head = "[sources.visits.options]"
    settings = settings.replace(head, f'[sources.visits]\nconnector = "{connector}"\n{head}')
    found = check_topics(load_folder(tmp_path, {"a.sql": TABLE}, settings), timeout_s=0.5)
    told = [*found.notes, *(problem.text for problem in found.problems[1:])]
    assert len(found.notes) == (connector == "kafka")
    assert ["ssl.truststore.location" in text for text in told] == [True]
