"""Options of sources and sinks: a typo is reported, and all of their options are known."""

from pathlib import Path

import pytest

from headrace.pipelines.declaring.option_names import sink_option_complaint, source_option_complaint
from headrace.pipelines.declaring.settings_file import SettingsFile
from headrace.spark import side_output
from headrace.spark.option_values import OptionValues
from headrace.spark.sink.options import SINK_OPTIONS
from headrace.spark.source import options as reader_options
from headrace.spark.source.options import STREAM_OPTIONS


@pytest.mark.parametrize("name", [*STREAM_OPTIONS, "FAILONDATALOSS", "kafka.client.rack"])
def test_options_of_the_reader_are_valid_in_any_case(name: str) -> None:
    assert source_option_complaint("orders", name) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("maxOffsetPerTrigger", "there is no option maxOffsetPerTrigger; did you mean maxOffsets"),
        ("subscribe", "subscribe is not allowed here: write topic or topics in [sources.orders]"),
        ("endingOffsets", "endingOffsets is not allowed here: a stream has no end"),
        (
            "pushFilters",
            "pushFilters is not allowed here: Spark would apply the filters of one query",
        ),
        ("path", "there is no option path"),
        ("kafka.secuirty.protocol", "there is no option kafka.secuirty.protocol; did you mean"),
        ("kafka.auto.offset.reset", "kafka.auto.offset.reset cannot be set: give startingOffsets"),
    ],
)
def test_unknown_options_are_reported_with_the_likely_name(name: str, told: str) -> None:
    assert (source_option_complaint("orders", name) or "").startswith(told)


@pytest.mark.parametrize("name", [*SINK_OPTIONS, "outputMode", "kafka.linger.ms"])
def test_options_of_the_writer_are_valid(name: str) -> None:
    assert sink_option_complaint(name) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("token.writter", "there is no option token.writter; did you mean token.writer?"),
        ("outputmode", "outputmode is written outputMode"),
        ("kafka.key.serializer", "kafka.key.serializer cannot be set: keys are written as"),
    ],
)
def test_unknown_options_of_the_writer_are_reported(name: str, told: str) -> None:
    assert (sink_option_complaint(name) or "").startswith(told)


def test_every_parsed_option_is_valid_or_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    text = OptionValues.text

    def noted(self: OptionValues, name: str) -> str | None:
        asked.add(name)
        return text(self, name)

    monkeypatch.setattr(OptionValues, "text", noted)
    reader_options.parse({"kafka.bootstrap.servers": "h:1", "subscribe": "t"}, is_streaming=True)
    internal = {side_output.OPTION}
    unknown = {
        name
        for name in asked - internal
        if "there is no" in (source_option_complaint("t", name) or "")
    }
    assert len(asked) > 15
    assert unknown == set()


def test_a_typo_is_reported_with_its_line(tmp_path: Path) -> None:
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
