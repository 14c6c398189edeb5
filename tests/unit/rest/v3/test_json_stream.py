"""JSON values one after the other, in whatever pieces they come."""

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
def test_values_come_whole_however_they_are_cut(
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
def test_what_is_wrong_is_handed_on_to_be_refused(body: bytes, values: list[bytes]) -> None:
    assert split(body) == values
    assert split(*(body[at : at + 1] for at in range(len(body)))) == values


def test_what_is_unfinished_is_counted() -> None:
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
def test_a_long_value_that_is_no_object_is_refused_before_it_is_whole(rest: bytes) -> None:
    with pytest.raises(RestError, match="is no JSON object"):
        split(b"1" * 3_000, b"1" * 3_000 + rest)
