"""Options of sources and sinks: a typo is told, and every option that they have is known."""

from pathlib import Path

import pytest

from headrace.pipelines.declaring.option_names import (
    sink_option_complaint,
    source_option_complaint,
)
from headrace.pipelines.declaring.settings_file import SettingsFile
from headrace.spark import refuge
from headrace.spark.sink.options import SINK_OPTIONS
from headrace.spark.source import options as reader_options
from headrace.spark.source.options import STREAM_OPTIONS


@pytest.mark.parametrize("name", [*STREAM_OPTIONS, "FAILONDATALOSS", "kafka.client.rack"])
def test_what_the_reader_has_is_known_in_any_case(name: str) -> None:
    assert source_option_complaint("orders", name) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("maxOffsetPerTrigger", "there is no option maxOffsetPerTrigger; did you mean maxOffsets"),
        ("subscribe", "subscribe is no option here: write topic or topics in [sources.orders]"),
        ("endingOffsets", "endingOffsets is no option here: a stream has no end"),
        ("pushFilters", "pushFilters is no option here: a query may ask a topic more than one"),
        ("path", "there is no option path"),
        ("kafka.secuirty.protocol", "there is no option kafka.secuirty.protocol; did you mean"),
        ("kafka.auto.offset.reset", "kafka.auto.offset.reset cannot be set: give startingOffsets"),
    ],
)
def test_others_are_told_with_what_is_meant(name: str, told: str) -> None:
    assert (source_option_complaint("orders", name) or "").startswith(told)


@pytest.mark.parametrize("name", [*SINK_OPTIONS, "outputMode", "kafka.linger.ms"])
def test_what_the_writer_has_is_known(name: str) -> None:
    assert sink_option_complaint(name) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("token.writter", "there is no option token.writter; did you mean token.writer?"),
        ("outputmode", "outputmode is written outputMode"),
        ("kafka.key.serializer", "kafka.key.serializer cannot be set: keys are written as"),
    ],
)
def test_what_the_writer_has_not_is_told(name: str, told: str) -> None:
    assert (sink_option_complaint(name) or "").startswith(told)


def test_every_option_that_is_parsed_is_known_or_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    text = reader_options._Reader.text

    def noted(self: reader_options._Reader, name: str) -> str | None:
        asked.add(name)
        return text(self, name)

    monkeypatch.setattr(reader_options._Reader, "text", noted)
    reader_options.parse({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}, is_streaming=True)
    internal = {refuge.OPTION}
    unknown = {
        name
        for name in asked - internal
        if "there is no" in (source_option_complaint("t", name) or "")
    }
    assert len(asked) > 15
    assert unknown == set()


def test_the_line_of_a_typo_is_told(tmp_path: Path) -> None:
    text = (
        '[pipeline]\nname = "x"\n[sources.a]\n[sources.a.options]\ngruop = "g"\n'
        '[client]\nsecurity.protocol = "SSL"\nssl.ca.loaction = "ca.pem"\n'
    )
    (tmp_path / "pipeline.toml").write_text(text)
    file = SettingsFile(tmp_path, {})
    file.sources()
    file.settings()
    assert [str(one) for one in file.problems] == [
        "pipeline.toml:5: there is no option gruop; did you mean group?",
        "pipeline.toml:8: there is no option ssl.ca.loaction; did you mean ssl.ca.location?",
    ]
