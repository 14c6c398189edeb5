"""Durations as Java writes them."""

import pytest

from headrace.settings.durations import duration_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H", 3_600_000),
        ("PT1H30M", 5_400_000),
        ("P2DT3M", 172_980_000),
        ("P1D", 86_400_000),
        ("PT0.5S", 500),
        ("PT1.0005S", 1_000),
        ("pt20s", 20_000),
        ("PT0S", 0),
    ],
)
def test_durations_are_read(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT1", "P1H", "PT-1H", "PT1.S", "P1DT"])
def test_other_texts_are_not_durations(text: str) -> None:
    assert duration_ms(text) is None
