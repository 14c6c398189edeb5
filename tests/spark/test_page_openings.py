"""The first examples of guides/spark-source.md and guides/spark-cluster.md, as written."""

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headrace.spark import session
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.source_topics import produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
PLACES = ("/var/lib/orders", "/srv/orders")


@pytest.fixture
def opening(broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path) -> Callable[[str], str]:
    """The first example of a page, with a topic of two orders and folders of the test."""
    topic = make_topic("orders")
    produce(broker.bootstrap_servers, topic, [{"value": b'{"id": 1, "price": 2.5}'}] * 2)

    def example(page: str) -> str:
        text = re.findall(r"^```python\n(.*?)^```", (GUIDES / page).read_text(), re.M | re.S)[0]
        text = text.replace("127.0.0.1:9092", broker.bootstrap_servers)
        text = text.replace('"subscribe", "orders"', f'"subscribe", "{topic}"')
        for place in PLACES:
            text = text.replace(place, f"{tmp_path}{place}")
        return str(text)

    return example


def test_the_opening_of_the_sources_page_writes_files(
    spark: "SparkSession", opening: Callable[[str], str], tmp_path: Path
) -> None:
    names: dict[str, Any] = {"spark": spark}
    text = opening("spark-source.md")
    # A new stream begins with new records, unless it is configured otherwise.
    earliest = '.option("startingOffsets", "earliest")'
    exec(text.replace(".load()", f"{earliest}.load()"), names)
    try:
        names["query"].processAllAvailable()
    finally:
        names["query"].stop()
    rows = spark.read.parquet(f"{tmp_path}/srv/orders").collect()
    assert [(row.id, row.price) for row in rows] == [(1, 2.5)] * 2


def test_the_opening_of_the_clusters_page_counts_records(
    spark: "SparkSession", opening: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "open_session", lambda name, master: spark)
    output = StringIO()
    with redirect_stdout(output):
        exec(opening("spark-cluster.md"), {})
    assert output.getvalue() == "2\n"
