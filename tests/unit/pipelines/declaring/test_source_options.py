"""Options of sources: a typo is told, and every option that the reader has is known."""

from pathlib import Path

import pytest

from headrace.pipelines.declaring.settings_file import SettingsFile
from headrace.pipelines.declaring.source_options import option_complaint
from headrace.spark import refuge
from headrace.spark.source import options as reader_options
from headrace.spark.source.options import STREAM_OPTIONS


@pytest.mark.parametrize("name", [*STREAM_OPTIONS, "FAILONDATALOSS", "kafka.anything.at.all"])
def test_what_the_reader_has_is_known_in_any_case(name: str) -> None:
    assert option_complaint("orders", name) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("maxOffsetPerTrigger", "there is no option maxOffsetPerTrigger; did you mean maxOffsets"),
        ("subscribe", "subscribe is no option here: write topic or topics in [sources.orders]"),
        ("endingOffsets", "endingOffsets is no option here: a stream has no end"),
    ],
)
def test_others_are_told_with_what_is_meant(name: str, told: str) -> None:
    assert (option_complaint("orders", name) or "").startswith(told)


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
        name for name in asked - internal if "there is no" in (option_complaint("t", name) or "")
    }
    assert len(asked) > 15
    assert unknown == set()


def test_the_line_of_a_typo_is_told(tmp_path: Path) -> None:
    text = '[pipeline]\nname = "x"\n[sources.a]\n[sources.a.options]\ngruop = "g"\n'
    (tmp_path / "pipeline.toml").write_text(text)
    file = SettingsFile(tmp_path, {})
    file.sources()
    assert [str(one) for one in file.problems] == [
        "pipeline.toml:5: there is no option gruop; did you mean group?"
    ]
