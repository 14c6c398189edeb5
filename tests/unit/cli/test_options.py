"""Values that users type."""

from pathlib import Path

import click
import pytest

from headrace.cli.main import main
from headrace.cli.options import (
    ClusterOptions,
    as_mapping,
    cluster_options,
    moment,
    name_value,
    parse_moment,
)
from headrace.errors import HeadraceError

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("1234567890123", 1_234_567_890_123),
        ("90s", NOW_MS - 90_000),
        ("15m", NOW_MS - 900_000),
        ("1.5h", NOW_MS - 5_400_000),
        ("7d", NOW_MS - 604_800_000),
        ("250ms", NOW_MS - 250),
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T01:00:00.250+01:00", 1_767_225_600_250),
    ],
)
def test_a_moment_may_be_written_in_many_ways(text: str, expected_ms: int) -> None:
    assert parse_moment(text, now_ms=NOW_MS) == expected_ms


@pytest.mark.parametrize("text", ["", "yesterday", "15x", "-5m", "2026-13-01"])
def test_an_invalid_moment_is_rejected_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter, match="15m"):
        moment(text)


def test_a_setting_may_hold_further_equal_signs() -> None:
    assert name_value("sasl.config=a=b") == ("sasl.config", "a=b")


@pytest.mark.parametrize("text", ["retention.ms", "=5", ""])
def test_an_invalid_setting_is_rejected(text: str) -> None:
    with pytest.raises(click.BadParameter, match="name=value"):
        name_value(text)


def test_a_setting_given_twice_is_a_mistake() -> None:
    with pytest.raises(HeadraceError, match=r"retention\.ms is given twice"):
        as_mapping([("retention.ms", "1"), ("retention.ms", "2")])


@pytest.mark.parametrize(
    "command",
    [
        ["capture", "orders", "--to", "s3://bucket/x"],
        ["pipelines", "init", "s3://bucket/x"],
        ["serve", "--lake", "s3://bucket/x"],
        ["spark", "jars", "s3://bucket/x"],
        ["tables", "list", "--lake", "s3://bucket/x"],
    ],
)
def test_a_url_is_rejected_as_a_folder(
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert "s3://bucket/x is not a folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "brokers"),
    [
        ([], "of-file:1"),
        (["--bootstrap", "of-option:2"], "of-option:2"),
    ],
)
def test_the_brokers_of_a_file_are_used_unless_an_option_names_others(
    tmp_path: Path, arguments: list[str], brokers: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=of-file:1\nsasl.username=ada\n")
    found: list[ClusterOptions] = []

    @click.command()
    @cluster_options
    def command(cluster: ClusterOptions) -> None:
        found.append(cluster)

    command.main([*arguments, "--command-config", str(file)], standalone_mode=False)
    assert found[0].bootstrap == brokers
    assert found[0].settings() == {"sasl.username": "ada"}
