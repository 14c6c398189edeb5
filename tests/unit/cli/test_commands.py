"""Decisions of single commands that need no cluster."""

import click
import pytest

from headrace.cli.configs import resource_name, selected, synonyms_text
from headrace.cli.consume import ReadLimits, record_writer, start_offset
from headrace.cli.main import main
from headrace.cli.output import report, size_text, time_text
from headrace.cli.records import find_record, parse_before
from headrace.cli.topics import parse_replicas
from headrace.client.descriptions import ConfigEntry, ConfigSynonym, Outcome
from headrace.client.reader import Start
from headrace.errors import HeadraceError
from headrace.protocol.batches import Record, build_batch


def entry(name: str, source: str = "DEFAULT_CONFIG", *, is_sensitive: bool = False) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value="1",
        source=source,
        type="INT",
        is_sensitive=is_sensitive,
        is_read_only=False,
        synonyms=[
            ConfigSynonym(name=name, value="1", source=source),
            ConfigSynonym(name="log." + name, value="2", source="STATIC_BROKER_CONFIG"),
        ],
    )


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Start(from_beginning=True)),
        ("latest", Start()),
        ("17", Start(offset=17)),
        ("-5", Start(offset=-5)),
    ],
)
def test_reading_may_begin_anywhere(text: str, start: Start) -> None:
    """LOG-13: seek to any offset, start of log, end."""
    assert start_offset(text) == start


def test_an_invalid_offset_is_rejected_with_the_valid_forms() -> None:
    with pytest.raises(click.BadParameter, match="-N for the last N"):
        start_offset("newest")


def test_reading_stops_at_the_end_or_after_silence_only_when_asked() -> None:
    assert not ReadLimits().are_met(is_at_end=True, silent_s=1e9)
    assert ReadLimits(exit_at_end=True).are_met(is_at_end=True, silent_s=0)
    assert not ReadLimits(exit_at_end=True).are_met(is_at_end=False, silent_s=1e9)
    assert ReadLimits(idle_s=2).are_met(is_at_end=False, silent_s=2)


def test_format_and_json_exclude_each_other() -> None:
    with pytest.raises(click.UsageError):
        record_writer("%v", as_json=True)


def test_replicas_are_written_as_kafka_writes_them() -> None:
    assert parse_replicas("1:2,2:3") == ((1, 2), (2, 3))
    with pytest.raises(HeadraceError, match="is not an assignment"):
        parse_replicas("1;2")


def test_only_changed_settings_are_shown_unless_asked() -> None:
    entries = [entry("retention.ms", "DYNAMIC_TOPIC_CONFIG"), entry("segment.ms")]
    assert selected(entries, show_all=False, pattern=None) == entries[:1]
    assert selected(entries, show_all=True, pattern=None) == entries
    assert selected(entries, show_all=False, pattern="seg*") == entries[1:]


def test_synonyms_are_shown_but_secrets_are_not() -> None:
    assert synonyms_text(entry("retention.ms")) == (
        "DEFAULT_CONFIG: retention.ms=1\nSTATIC_BROKER_CONFIG: log.retention.ms=2"
    )
    assert "=1" not in synonyms_text(entry("ssl.key.password", is_sensitive=True))


def test_all_brokers_have_an_empty_name_on_the_wire() -> None:
    assert resource_name("broker", "default") == ""
    assert resource_name("topic", "default") == "default"


def test_the_record_at_an_offset_or_the_next_one_is_found() -> None:
    content = bytes(build_batch([Record(5, 1, None, b"a"), Record(9, 2, None, b"b")]))
    assert find_record("t", 0, 5, content).record.value == "a"
    assert find_record("t", 0, 7, content).record.offset == 9
    with pytest.raises(HeadraceError, match="no record left"):
        find_record("t", 0, 10, content)


def test_deleting_before_latest_is_deleting_all() -> None:
    assert parse_before("latest") == -1
    assert parse_before("12") == 12
    with pytest.raises(click.BadParameter):
        parse_before("-2")


def test_outcomes_are_reported_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [
        Outcome(name="a"),
        Outcome(name="b", error="TOPIC_ALREADY_EXISTS", message="it is there"),
    ]
    assert report(outcomes, done="created", as_json=False) == 1
    shown = capsys.readouterr()
    assert shown.out == "a created\n"
    assert shown.err == "headrace: b: it is there (TOPIC_ALREADY_EXISTS)\n"
    forgiven = {"TOPIC_ALREADY_EXISTS": "exists already"}
    assert report(outcomes, done="created", forgiven=forgiven, as_json=False) == 0
    assert "b exists already" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "alter", "t"],
        ["topics", "create", "t", "--assignment", "1", "--partitions", "2"],
        ["topics", "add-partitions", "t"],
        ["configs", "alter", "topic", "t"],
        ["configs", "describe", "planet", "earth"],
        ["records", "delete", "t", "--before", "5"],
        ["offsets", "t", "--newest", "--time", "1"],
        ["consume", "t", "--from-beginning", "--offset", "1", "-b", "127.0.0.1:1"],
        ["produce", "t", "--key", "k", "--key-separator", ":"],
        ["produce", "t", "--repartition"],
        ["consume", "t", "--group", "g", "--offset", "3"],
        ["groups", "describe"],
        ["configs", "alter", "topic", "t", "--unset-all", "--unset", "retention.ms"],
        ["up", "--listen", "localhost"],
        ["up", "--metrics", "70000"],
        ["bench", "--producers", "0", "--consumers", "0"],
        ["bench", "--producers", "0"],
        ["bench", "--size", "4"],
        ["bench", "--records", "0"],
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused_at_once(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "Error: " in capsys.readouterr().err


def test_sizes_and_times_are_for_people() -> None:
    assert [size_text(size) for size in (0, 1023, 1536, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "3.0 GiB",
    ]
    assert time_text(1_767_225_600_001) == "2026-01-01T00:00:00.001Z"
    assert time_text(-1) == "-"
    assert time_text(1 << 62) == str(1 << 62)
