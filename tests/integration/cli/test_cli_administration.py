"""Topics, configs, offsets, records and logs from the command line."""

from tests.clients.librdkafka import (
    create_topic,
    numbered,
    produce,
    read_values,
    unique_name,
    values,
)
from tests.integration.cli.commands import headrace, ok
from tests.processes.nodes import Node


def test_a_topic_lives_from_create_to_delete(node: Node) -> None:
    """LOG-5: a topic is created with partitions and configs, described, deleted."""
    name = unique_name("cli")
    ok(node, "topics", "create", name, "--partitions", "3", "--set", "retention.ms=60000")
    described = ok(node, "topics", "describe", name, "--json").document[0]
    assert described["configs"] == {"retention.ms": "60000"}
    assert [part["partition"] for part in described["partitions"]] == [0, 1, 2]
    assert name in ok(node, "topics", "list").out
    ok(node, "topics", "delete", name)
    assert headrace(node, "topics", "describe", name).code == 1


def test_creating_twice_is_an_error_without_if_not_exists(node: Node, topic: str) -> None:
    done = headrace(node, "topics", "create", topic)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "(TOPIC_ALREADY_EXISTS)" in done.err
    ok(node, "topics", "create", topic, "--if-not-exists")


def test_deleting_a_missing_topic_is_an_error_without_if_exists(node: Node) -> None:
    assert headrace(node, "topics", "delete", "never-was").code == 1
    ok(node, "topics", "delete", "never-was", "--if-exists")


def test_a_topic_is_deleted_by_id(node: Node, topic: str) -> None:
    (listed,) = ok(node, "topics", "list", topic, "--json").document
    ok(node, "topics", "delete", "--by-id", listed["topic_id"])
    assert ok(node, "topics", "list", topic, "--json").document == []


def test_validating_changes_nothing(node: Node) -> None:
    name = unique_name("cli")
    assert "can be created" in ok(node, "topics", "create", name, "--validate-only").out
    assert ok(node, "topics", "list", name, "--json").document == []


def test_a_topic_is_altered_and_grows(node: Node, topic: str) -> None:
    ok(node, "topics", "alter", topic, "--set", "segment.ms=120000", "--partitions", "2")
    ok(node, "topics", "alter", topic, "--unset", "segment.ms")
    ok(node, "topics", "add-partitions", topic, "--by", "2")
    (described,) = ok(node, "topics", "describe", topic, "--json").document
    assert described["configs"] == {}
    assert len(described["partitions"]) == 4


def test_a_bad_setting_is_refused_with_its_name(node: Node, topic: str) -> None:
    done = headrace(node, "configs", "alter", "topic", topic, "--set", "retention.mz=5")
    assert done.code == 1
    assert "retention.mz" in done.err


def test_settings_show_where_they_come_from(node: Node, topic: str) -> None:
    ok(node, "configs", "alter", "topic", topic, "--set", "retention.ms=3600000")
    (changed,) = ok(
        node, "configs", "describe", "topic", topic, "--filter", "retention.ms", "--json"
    ).document
    assert (changed["value"], changed["source"]) == ("3600000", "DYNAMIC_TOPIC_CONFIG")
    assert changed["synonyms"][0]["source"] == "DYNAMIC_TOPIC_CONFIG"
    ok(node, "configs", "alter", "topic", topic, "--unset", "retention.ms")
    entries = ok(node, "configs", "describe", "topic", topic, "--all", "--json").document
    by_name = {entry["name"]: entry for entry in entries}
    assert by_name["retention.ms"]["source"] != "DYNAMIC_TOPIC_CONFIG"


def test_list_settings_are_appended_to_and_subtracted_from(node: Node, topic: str) -> None:
    def policy() -> str:
        (entry,) = ok(
            node, "configs", "describe", "topic", topic, "--filter", "cleanup.policy", "--json"
        ).document
        return str(entry["value"])

    ok(node, "configs", "alter", "topic", topic, "--append", "cleanup.policy=compact")
    assert set(policy().split(",")) == {"delete", "compact"}
    ok(node, "configs", "alter", "topic", topic, "--subtract", "cleanup.policy=delete")
    assert policy() == "compact"


def test_settings_of_a_broker_are_described(node: Node) -> None:
    brokers = ok(node, "cluster", "--json").document["brokers"]
    entries = ok(node, "configs", "describe", "broker", str(brokers[0]["id"]), "--json").document
    assert "log.retention.check.interval.ms" in {entry["name"] for entry in entries}


def test_offsets_are_reported_by_end_and_by_time(node: Node, topic: str) -> None:
    """LOG-13: by offset, start of log, end, by time."""
    acknowledged = produce(node, topic, values("a", "b", "c"))
    (reported,) = ok(node, "offsets", topic, "--json").document
    assert reported == {"topic": topic, "partition": 0, "earliest": 0, "latest": 3, "offsets": 3}
    (same,) = ok(node, "offsets", f"{topic[:-1]}[{topic[-1]}]", "--json").document
    assert same == reported
    time_ms = acknowledged[0].timestamp()[1]
    (first,) = ok(node, "offsets", topic, "--time", str(time_ms), "--json").document
    assert (first["offset"], first["timestamp"]) == (0, time_ms)
    (later,) = ok(node, "offsets", topic, "--time", str(time_ms + 10**7), "--json").document
    assert later["offset"] == -1
    (newest,) = ok(node, "offsets", topic, "--newest", "--json").document
    assert newest["offset"] >= 0


def test_records_are_deleted_before_an_offset(node: Node, topic: str) -> None:
    produce(node, topic, numbered(5))
    ok(node, "records", "delete", topic, "--partition", "0", "--before", "3")
    assert read_values(node, topic) == [b"3", b"4"]
    ok(node, "records", "delete", topic, "--all-partitions", "--before", "latest")
    (reported,) = ok(node, "offsets", topic, "--json").document
    assert reported["earliest"] == reported["latest"] == 5


def test_deleting_beyond_the_end_is_refused(node: Node, topic: str) -> None:
    done = headrace(node, "records", "delete", topic, "-p", "0", "--before", "10")
    assert done.code == 1
    assert done.err.startswith(f"headrace: {topic}-0 holds no records, not 10; list the offsets")


def test_one_record_is_shown_with_its_batch(node: Node, topic: str) -> None:
    """LOG-2: a read record shows topic, partition, offset, timestamp, headers."""
    produce(node, topic, numbered(4), compression_type="none")
    shown = ok(node, "records", "show", topic, "0", "2", "--json").document
    assert (shown["topic"], shown["partition"]) == (topic, 0)
    assert (shown["record"]["offset"], shown["record"]["value"]) == (2, "2")
    assert (shown["batch"]["magic"], shown["batch"]["is_valid"]) == (2, True)
    assert headrace(node, "records", "show", topic, "0", "99").code == 1


def test_producers_that_a_partition_remembers_are_listed(node: Node, topic: str) -> None:
    produce(node, topic, numbered(4), enable_idempotence=True)
    (producer,) = ok(node, "records", "producers", topic, "--json").document
    assert (producer["partition"], producer["last_sequence"]) == (0, 3)
    assert producer["transaction_start_offset"] is None


def test_the_files_of_a_partition_are_dumped(node: Node) -> None:
    """LOG-2, LOG-12: segments with base offsets and sizes; batches with magic, CRC, codec, size."""
    topic = create_topic(node, segment_bytes=1024 * 1024)
    for _ in range(3):
        produce(node, topic, numbered(600, size=1000), compression_type="none")
    directory = node.data / f"{topic}-0"
    segments = ok(node, "log", "segments", str(directory), "--json").document
    assert segments[0]["base_offset"] == 0
    assert len(segments) > 1  # The number depends on the client's batches.
    assert sum(one["size_bytes"] for one in segments) > 1_800_000
    logs = sorted(map(str, directory.glob("*.log")))
    batches = ok(node, "log", "dump", *logs, "--records", "--json").documents
    offsets = [r["offset"] for b in batches if b["entry"] == "batch" for r in b["records"]]
    assert offsets == list(range(1800))
    assert all(batch["is_valid"] for batch in batches if batch["entry"] == "batch")
    indexes = sorted(map(str, directory.glob("*.index")))
    assert headrace(node, "log", "dump", *indexes).code == 0


def test_the_metadata_log_is_dumped(node: Node, topic: str) -> None:
    logs = sorted(map(str, (node.data / "__cluster_metadata-0").glob("*.log")))
    entries = ok(node, "log", "dump", *logs, "--records", "--json").documents
    records = [
        r["value"] for e in entries if not e.get("is_control") for r in e.get("records") or ()
    ]
    assert topic in {record.get("name") for record in records if record["type"] == "TopicRecord"}


def test_log_directories_are_listed_with_replicas_and_sizes(node: Node, topic: str) -> None:
    produce(node, topic, numbered(10, size=1000), compression_type="none")
    (directory,) = ok(node, "log", "dirs", "--topic", topic, "--json").document
    (replica,) = directory["replicas"]
    assert (replica["topic"], replica["partition"]) == (topic, 0)
    assert replica["size_bytes"] > 10_000


def test_a_cluster_is_described(node: Node) -> None:
    described = ok(node, "cluster", "--json").document
    (broker,) = described["brokers"]
    assert (broker["port"], broker["is_fenced"]) == (node.port, False)
    assert described["quorum"]["leader"] == broker["id"]
    assert "metadata.version" in {feature["name"] for feature in described["features"]}
    assert described["cluster_id"] in ok(node, "cluster").out


def test_a_misspelt_topic_is_reported_with_its_neighbours(node: Node) -> None:
    name = unique_name("customers")
    ok(node, "topics", "create", name)
    for words in (("offsets",), ("topics", "describe"), ("topics", "delete"), ("consume",)):
        done = headrace(node, *words, f"{name}s")
        assert done.code == 1
        assert f"does not exist; near it: {name}" in done.err


def test_a_missing_topic_is_one_clear_line(node: Node) -> None:
    for command in (("offsets",), ("records", "delete", "--before", "1", "-p", "0")):
        done = headrace(node, *command, "no-such-topic")
        assert done.code == 1
        assert done.err.startswith("headrace: topic 'no-such-topic' does not exist;")
    described = headrace(node, "topics", "describe", "no-such-topic")
    assert "no-such-topic: does not exist; list the topics with: headrace topics" in described.err


def test_a_reset_that_creates_a_group_reports_it(node: Node) -> None:
    """OPS-1: a misspelt name is noticed, and the group that was meant is named."""
    topic, group = create_topic(node), unique_name("billing")
    made = ok(node, "groups", "reset", group, "--topic", topic, "--to-earliest")
    assert f"group '{group}' does not exist" in made.err
    again = ok(node, "groups", "reset", group, "--topic", topic, "--to-earliest")
    assert again.err == ""
    typo = ok(node, "groups", "reset", group + "x", "--topic", topic, "--to-latest", "--dry-run")
    assert f"near it: {group}" in typo.err
