"""Consecutive JSON values in pieces of any size."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.rest.errors import RestError
from headrace.rest.v3 import json_stream
from headrace.rest.v3.json_stream import JsonSplitter

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


def split(*pieces: bytes) -> list[bytes]:
    splitter = JsonSplitter()
    found = [value for piece in pieces for value in splitter.feed(piece)]
    return found + splitter.finish()


@given(
    objects=st.lists(OBJECTS, max_size=5),
    between=st.sampled_from(["", " ", "\n", "\r\n\t "]),
    size=st.integers(1, 50),
    indent=st.none() | st.integers(0, 3),
)
def test_values_are_complete_for_any_pieces(
    objects: list[object], between: str, size: int, indent: int | None
) -> None:
    text = between.join(json.dumps(one, indent=indent, ensure_ascii=False) for one in objects)
    body = text.encode()
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert [json.loads(one) for one in split(*pieces)] == objects


@pytest.mark.parametrize(
    ("body", "values"),
    [
        (b"", []),
        (b" \r\n ", []),
        (b'{"a":"}"}{"b":"\\"{"}', [b'{"a":"}"}', b'{"b":"\\"{"}']),
        (b"{}[]{}", [b"{}", b"[]", b"{}"]),
        (b"1 2 {}", [b"1", b"2", b"{}"]),
        (b'{"a":', [b'{"a":']),
        (b"} {}", [b"}", b"{}"]),
        (b"nonsense", [b"nonsense"]),
        (b'{"a":"\\', [b'{"a":"\\']),
    ],
)
def test_invalid_values_are_passed_on_to_the_decoder(body: bytes, values: list[bytes]) -> None:
    assert split(body) == values
    assert split(*(body[at : at + 1] for at in range(len(body)))) == values


def test_the_size_of_an_incomplete_value_is_counted() -> None:
    splitter = JsonSplitter()
    assert splitter.feed(b'{"a":"' + b"x" * 100) == []
    assert splitter.size == 106
    assert splitter.feed(b'"}') == [b'{"a":"' + b"x" * 100 + b'"}']
    assert splitter.size == 0


class Counted:
    """A pattern that counts the bytes that it looks at."""

    def __init__(self, pattern: "re.Pattern[bytes]") -> None:
        self.pattern = pattern
        self.looked_at = 0

    def search(self, data: bytearray, start: int) -> "re.Match[bytes] | None":
        found = self.pattern.search(data, start)
        self.looked_at += (len(data) if found is None else found.end()) - start
        return found


@pytest.fixture
def patterns(monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    """All patterns of the splitter, counted."""
    found = []
    for name, value in list(vars(json_stream).items()):
        if isinstance(value, re.Pattern):
            found.append(Counted(value))
            monkeypatch.setattr(json_stream, name, found[-1])
    return found


@pytest.mark.parametrize(
    "body",
    [b"1" * 4_000, b"1 " * 2_000, b"{}\n" * 2_000, b'{"a":"' + b"x" * 4_000 + b'"}', b" " * 4_000],
)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_work_grows_with_the_body_and_not_with_its_pieces(
    patterns: list[Counted], body: bytes, size: int
) -> None:
    split(*(body[at : at + size] for at in range(0, len(body), size)))
    assert sum(one.looked_at for one in patterns) <= 3 * len(body)


@pytest.mark.parametrize("rest", [b"", b" ", b"{}"])
def test_a_long_value_other_than_an_object_is_rejected_before_its_end(rest: bytes) -> None:
    with pytest.raises(RestError, match="is not a JSON object"):
        split(b"1" * 3_000, b"1" * 3_000 + rest)
