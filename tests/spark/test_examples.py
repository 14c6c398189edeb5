"""Every example from its records to its tables, with the numbers of its README."""

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from examples.pipelines import __main__ as examples
from examples.pipelines.access_logs import generate
from examples.pipelines.checking import load
from examples.pipelines.customer_voice.generate import PRODUCTS
from examples.pipelines.database_to_warehouse import generate as shop
from examples.pipelines.feeding import Record, feed
from examples.pipelines.iot_sensors import generate as sensors
from headrace.client.cluster import NoSuchTopic
from headrace.client.reader import RecordReader, Start
from headrace.lake.catalog import Lake
from headrace.pipelines import commands
from headrace.testing.process import BrokerProcess
from tests.processes import postgres
from tests.spark.pipeline_folders import Continuously, Folder, eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.timeout(600)  # A whole pipeline with all its tables each.

RunExample = Callable[[str], list[str]]
ALARMS = "sensor-alarms"


@pytest.fixture(scope="module")
def broker_of_examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker of their own: examples have fixed topic names, which other tests may have used."""
    with examples.own_broker(tmp_path_factory.mktemp("examples")) as started:
        yield started


@pytest.fixture
def run_example(
    spark: "SparkSession", broker_of_examples: BrokerProcess, tmp_path: Path
) -> RunExample:
    """Send an example's records, run its pipeline once, return differences to its expected.toml."""
    return lambda name: examples.run(name, broker_of_examples.bootstrap_servers, tmp_path, spark)


@pytest.fixture(scope="module")
def access_logs(
    spark: "SparkSession",
    broker_of_examples: BrokerProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, list[str]]:
    """The lake of the example after its first run, and the differences to its expected.toml."""
    lake = tmp_path_factory.mktemp("access_logs")
    bootstrap = broker_of_examples.bootstrap_servers
    return lake, examples.run("access_logs", bootstrap, lake, spark)


def test_access_logs(access_logs: tuple[Path, list[str]]) -> None:
    """USE-4, ARC-4: the counts of both files, exactly, in every zone."""
    _, wrong = access_logs
    assert wrong == []


def test_endless_traffic_is_processed_exactly_once(
    spark: "SparkSession", broker_of_examples: BrokerProcess, access_logs: tuple[Path, list[str]]
) -> None:
    """USE-4: malformed lines are quarantined; repeated lines count once, also across runs."""
    lake, _ = access_logs
    bootstrap = broker_of_examples.bootstrap_servers
    files = list(generate.records())
    traffic = generate.traffic(seed=4, now=lambda: datetime(2026, 3, 2, 12, tzinfo=UTC))
    sent = [*itertools.islice(traffic, 1_000), *files[:7]]
    feed(bootstrap, sent, generate.TOPICS)
    commands.run(
        [examples.FOLDER / "access_logs"],
        is_once=True,
        overrides=commands.Overrides(bootstrap=bootstrap, lake=str(lake)),
        spark=spark,
    )
    malformed = {record.key for record in sent if record.value in generate.MALFORMED}
    unreadable = sum(record.key in malformed for record in sent)
    lines = {record.key for record in (*files, *sent)} - malformed
    assert counted(lake) == {
        "raw": len(files) + len(sent),
        "staging": len(files) + len(sent) - unreadable,
        "quarantine": unreadable,
        "trusted": len(lines),
        "refined": len(lines),
    }
    letters = records_of(bootstrap, "access-log-refused")
    assert sorted(letter.value().decode() for letter in letters) == sorted(
        record.value for record in sent if record.key in malformed
    )
    reasons = {dict(letter.headers())["headrace.reason"] for letter in letters}
    assert reasons == {b"not a line in the combined log format"}


def test_endless_traffic_has_the_lines_of_the_files_at_the_current_time() -> None:
    """USE-4: most lines differ only in their time, the others are varied or malformed."""
    now = datetime(2026, 3, 2, 12, tzinfo=UTC)
    files = [record.value for record in generate.records()]
    as_of_now = [re.sub(r"\[.*?\]", "[02/Mar/2026:12:00:00 +0000]", line) for line in files]
    traffic = generate.traffic(seed=4, now=lambda: now)
    sent = itertools.islice(traffic, 10 * len(files))
    lines = {record.key: record.value for record in sent}  # Repeated records have one key.
    unchanged = sum(map(str.__eq__, lines.values(), itertools.cycle(as_of_now)))
    varied = [line for line in lines.values() if line not in as_of_now]
    assert 0.6 < unchanged / len(lines) < 0.8
    assert {line.split()[5] for line in varied if generate.LINE.fullmatch(line)} == {
        '"POST',
        '"GET',
    }
    assert set(varied) & set(generate.MALFORMED)


def test_bank_customer_360(run_example: RunExample) -> None:
    """USE-8: personal, card and payment events joined to one view; alerts to a topic."""
    assert run_example("bank_customer_360") == []


def test_flight_status(run_example: RunExample) -> None:
    """USE-1, ARC-8: each further system is a source, each further reader a flow."""
    assert run_example("flight_status") == []


def test_web_activity(run_example: RunExample) -> None:
    """USE-2, USE-13, ARC-7: page counts, sessions and recommendations, without probes."""
    assert run_example("web_activity") == []


def test_metrics(run_example: RunExample) -> None:
    """USE-3, ARC-1: operational metrics by service and minute, from both layers."""
    assert run_example("metrics") == []


def test_iot_sensors(run_example: RunExample) -> None:
    """USE-13, ARC-3: near real time for tables and real time for alarms, on one topic."""
    assert run_example("iot_sensors") == []


def test_new_readings_reach_tables_and_alarms_while_the_pipeline_of_sensors_runs(
    spark: "SparkSession", own_broker: BrokerProcess, tmp_path: Path
) -> None:
    """USE-13, ARC-3: near real time; the test shortens the trigger of the tables to a second."""
    path = tmp_path / "iot_sensors"
    shutil.copytree(examples.FOLDER / "iot_sensors", path, ignore=shutil.ignore_patterns("lake"))
    settings = (path / "pipeline.toml").read_text()
    (path / "pipeline.toml").write_text(settings.replace('"1 minute"', '"1 second"'))
    folder = Folder(path, own_broker, spark)
    bootstrap = own_broker.bootstrap_servers
    now = datetime(2026, 3, 2, 15, tzinfo=UTC)

    def arrive(sensor: str, heat: float) -> None:
        """Send a reading, and wait until every table and the topic of alarms has it."""
        reading = f"{sensor},temperature,{heat},{now.isoformat()}"
        feed(bootstrap, [Record(sensors.TOPIC, sensor, reading)], sensors.TOPICS)
        eventually(lambda: heat in alarms(), f"an alarm of {heat}")
        eventually(lambda: heat in values("trusted.sensors", "value"), f"{heat} as the last one")
        eventually(lambda: heat in values("refined.sensor_windows", "most"), f"{heat} in windows")

    def alarms() -> list[float]:
        running.check()
        try:
            return [json.loads(one.value())["value"] for one in records_of(bootstrap, ALARMS)]
        except NoSuchTopic:
            return []  # The first alarm creates the topic.

    def values(table: str, column: str) -> list[float]:
        running.check()
        return folder.rows(table, column) if table in folder.lake.names() else []

    feed(bootstrap, [], sensors.TOPICS)
    with Continuously([folder]) as running:
        arrive("bed-1", 75.5)
        arrive("bed-2", 81.0)
    running.check()


def test_mails_and_posts_become_one_table(
    run_example: RunExample, broker_of_examples: BrokerProcess, tmp_path: Path
) -> None:
    """USE-13, ARC-6, ARC-7: different sources in one format, near real time, a topic by product.

    All records of a product are in one partition, in the order of the table.
    """
    assert run_example("customer_voice") == []
    sent = records_of(broker_of_examples.bootstrap_servers, "complaints")
    places = {(record.key().decode(), record.partition()) for record in sent}
    assert len({partition for _, partition in places}) > 1
    assert sorted(product for product, _ in places) == sorted(PRODUCTS)
    voices = Lake(tmp_path).table("trusted.voices").rows(where="mood = 'complaint'").to_pylist()
    for product in PRODUCTS:
        of_product = (json.loads(one.value()) for one in sent if one.key() == product.encode())
        assert [(one["author"], one["channel"]) for one in of_product] == [
            (voice["author"], voice["channel"]) for voice in voices if voice["product"] == product
        ]


def test_a_database_to_the_warehouse(run_example: RunExample) -> None:
    """ARC-3: batch windows of a database; a window that is read twice changes nothing."""
    assert run_example("database_to_warehouse") == []


def test_postgresql_to_the_warehouse(
    spark: "SparkSession",
    own_broker: BrokerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ARC-3: another database fills the same tables."""
    bin_folder = postgres.programs()
    if bin_folder is None:
        pytest.skip("PostgreSQL is not installed; Debian has it in the package postgresql")
    import psycopg

    with postgres.running(bin_folder) as url, closing(psycopg.connect(url)) as database:
        database.execute(shop.CREATE.format(time="TIMESTAMPTZ"))
        monkeypatch.setattr(shop, "records", lambda: shop.windows(url, database, "%s"))
        bootstrap = own_broker.bootstrap_servers
        assert examples.run("database_to_warehouse", bootstrap, tmp_path / "lake", spark) == []


def test_every_example_is_tested() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    tested = set(re.findall(r'run(?:_example)?\("(\w+)"', text))
    assert tested == set(examples.NAMES)


def records_of(bootstrap: str, topic: str) -> list[Any]:
    """Return the committed records of a topic, by partition and offset."""
    found: list[Any] = []
    with closing(RecordReader(bootstrap, topic, {"isolation.level": "read_committed"})) as reader:
        reader.assign(Start(from_beginning=True), reader.partitions())
        while not reader.is_at_end:
            found += reader.read()
    return sorted(found, key=lambda record: (record.partition(), record.offset()))


def counted(lake: Path) -> dict[str, int]:
    """Return the number of lines in each zone."""
    with closing(duckdb.connect()) as tables:
        load(Lake(lake), tables)
        rows = tables.execute(
            """
            SELECT 'raw', count(*) FROM raw.access_log
            UNION ALL SELECT 'staging', count(*) FROM staging.access_log
            UNION ALL SELECT 'quarantine', count(*) FROM quarantine.staging__access_log
            UNION ALL SELECT 'trusted', count(*) FROM trusted.access_log
            UNION ALL SELECT 'refined', sum(requests)::BIGINT FROM refined.traffic_by_minute
            """
        ).fetchall()
    return dict(rows)
