"""JSON with Jackson's numbers and escapes."""

import pytest

from headrace.serdes.avro.json_text import double_text, read_json, write_json


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.5, "-0.5"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (-2.5e-10, "-2.5E-10"),
        (1e300, "1.0E300"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_a_double_has_the_digits_that_java_prints(number: float, text: str) -> None:
    assert double_text(number) == text


def test_control_characters_are_escaped_as_jackson_escapes_them() -> None:
    assert write_json({"a": '\x1f\n"é\\u001f'}) == '{"a":"\\u001F\\n\\"é\\\\u001f"}'


def test_a_list_within_a_text_is_no_depth() -> None:
    assert read_json('"' + "[" * 1000 + '"') == "[" * 1000


def test_json_nested_too_deep_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 200 deep"):
        read_json("[" * 201 + "]" * 201)
