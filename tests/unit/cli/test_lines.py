"""Lines cut from chunks."""

import os

from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.lines import LineSplitter, read_lines


@given(
    lines=st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)),
    sizes=st.lists(st.integers(1, 30), min_size=1),
)
def test_chunks_of_any_size_give_the_same_lines(lines: list[bytes], sizes: list[int]) -> None:
    content = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found: list[bytes] = []
    turn = 0
    while content:
        size = sizes[turn % len(sizes)]
        found += splitter.push(content[:size])
        content = content[size:]
        turn += 1
    assert found + splitter.finish() == lines


def test_a_last_line_needs_no_newline() -> None:
    splitter = LineSplitter()
    assert splitter.push(b"one\ntwo") == [b"one"]
    assert splitter.finish() == [b"two"]
    assert splitter.finish() == []


def test_an_empty_line_is_a_line() -> None:
    assert LineSplitter().push(b"\n\nx\n") == [b"", b"", b"x"]


def test_reading_calls_back_while_nothing_comes() -> None:
    source, sink = os.pipe()

    def write_and_leave() -> None:
        os.write(sink, b"a\nb")
        os.close(sink)

    assert list(read_lines(source, write_and_leave, interval_s=0.01)) == [[b"a"], [b"b"]]
    os.close(source)
