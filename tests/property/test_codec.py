"""Any bytes give a message or a DecodeError."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol.codec import DecodeError, decode, encode, read
from headrace.protocol.framing import encode_request, read_request_header
from headrace.protocol.hot_produce import read_produce
from headrace.protocol.message import Message
from headrace.protocol.metadata_records import decode_metadata_record, encode_metadata_record
from headrace.protocol.schemas.produce import ProduceRequest
from tests.builders.messages import (
    CONTROL_RECORDS,
    METADATA_RECORDS,
    REQUESTS,
    RESPONSES,
    every_version,
    sample,
)

REQUEST_VERSIONS = every_version(REQUESTS)
ALL_VERSIONS = every_version([*REQUESTS, *RESPONSES, *METADATA_RECORDS, *CONTROL_RECORDS])
HUGE = (0x7F, 0x80, 0xFF)

requests = st.sampled_from(REQUEST_VERSIONS)
seeds = st.integers(0, 1 << 32)


def decoded(message: type[Message], version: int, data: bytes) -> Message | None:
    """The message, or None when it was refused; anything else raised is a failure."""
    try:
        return decode(message, version, data)
    except DecodeError:
        return None


@given(st.sampled_from(ALL_VERSIONS), seeds)
@settings(max_examples=400)
def test_encoded_messages_decode_to_equal_ones(which: tuple[type[Message], int], seed: int) -> None:
    message, version = which
    made = sample(message, version, seed)
    assert decode(message, version, encode(made, version)) == made


@pytest.mark.parametrize(("message", "version"), REQUEST_VERSIONS)
def test_a_request_cut_short_anywhere_is_refused(message: type[Message], version: int) -> None:
    encoded = shortest(message, version)
    for cut in range(len(encoded)):
        assert decoded(message, version, encoded[:cut]) is None


@pytest.mark.parametrize(("message", "version"), REQUEST_VERSIONS)
def test_a_request_with_a_byte_changed_is_a_message_or_refused(
    message: type[Message], version: int
) -> None:
    encoded = shortest(message, version)
    for position in range(len(encoded)):
        for byte in (0x00, 0x01, *HUGE, encoded[position] ^ 0x01):
            changed = bytearray(encoded)
            changed[position] = byte
            decoded(message, version, bytes(changed))


@pytest.mark.parametrize(("message", "version"), REQUEST_VERSIONS)
def test_bytes_after_a_request_are_refused(message: type[Message], version: int) -> None:
    encoded = shortest(message, version)
    with pytest.raises(DecodeError):
        decode(message, version, encoded + b"\x00")
    assert read(message, version, encoded + b"\x00")[1] == len(encoded)


@given(requests, seeds, st.data())
@settings(max_examples=600)
def test_a_mangled_request_is_a_message_or_refused(
    which: tuple[type[Message], int], seed: int, data: st.DataObject
) -> None:
    message, version = which
    encoded = bytearray(encode(sample(message, version, seed), version))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(encoded)))
        end = data.draw(st.integers(start, min(start + 8, len(encoded))))
        encoded[start:end] = data.draw(st.binary(max_size=8))
    decoded(message, version, bytes(encoded))


@given(requests, st.binary(max_size=200))
@settings(max_examples=600)
def test_garbage_is_a_message_or_refused(which: tuple[type[Message], int], garbage: bytes) -> None:
    decoded(*which, garbage)


@given(st.binary(max_size=60))
def test_a_garbage_header_is_a_header_or_refused(garbage: bytes) -> None:
    try:
        _, position = read_request_header(garbage)
    except DecodeError:
        return
    assert position <= len(garbage)


@given(st.binary(max_size=100) | st.binary(max_size=60).map(lambda tail: b"\x01" + tail))
def test_a_garbage_metadata_record_is_a_record_or_refused(garbage: bytes) -> None:
    try:
        record, version = decode_metadata_record(garbage)
    except DecodeError:
        return
    encode_metadata_record(record, version)


@pytest.mark.parametrize(("message", "version"), REQUEST_VERSIONS)
def test_counts_are_checked_before_anything_is_made(message: type[Message], version: int) -> None:
    """Runs of the bytes that announce the most, at every alignment, make next to nothing."""
    hostile = [bytes([byte]) * 4096 for byte in (0x7F, 0xFF)]
    hostile += [bytes(skip) + bytes.fromhex("ffffffff07") * 400 for skip in range(24)]
    hostile += [bytes(skip) + bytes.fromhex("7fffffff") * 500 for skip in range(24)]
    decoded(message, version, b"")  # Compiles outside of what is measured.
    tracemalloc.start()
    for data in hostile:
        decoded(message, version, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


@given(requests, seeds)
@settings(max_examples=200)
def test_unknown_tagged_fields_are_passed_over(which: tuple[type[Message], int], seed: int) -> None:
    message, version = which
    if version < message.FLEXIBLE_FROM:
        return
    made = message()
    encoded = bytes(encode(made, version))
    assert encoded.endswith(b"\x00")  # No tagged field is set.
    content = b"x" * (seed % 300)
    size = bytearray()
    length = len(content)
    while length > 127:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    tagged = encoded[:-1] + b"\x02" + b"\x63" + size + content + b"\xe4\x00\x00"
    assert decode(message, version, tagged) == made


@given(st.sampled_from(ProduceRequest.VERSIONS), seeds, st.data())
@settings(max_examples=400)
def test_the_two_readers_of_produce_requests_agree(
    version: int, seed: int, data: st.DataObject
) -> None:
    encoded = bytearray(encode(sample(ProduceRequest, version, seed), version))
    if data.draw(st.booleans()):
        start = data.draw(st.integers(0, len(encoded)))
        encoded[start : start + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    request = decoded(ProduceRequest, version, bytes(encoded))
    try:
        view = read_produce(memoryview(encoded), 0, version)
    except DecodeError:
        assert request is None
        return
    if isinstance(request, ProduceRequest):
        assert (view.acks, view.timeout_ms) == (request.acks, request.timeout_ms)
        assert view.transactional_id == request.transactional_id
        assert view.topics == [
            (
                topic.name.encode() if version < 13 else topic.topic_id,
                [(partition.index, partition.records) for partition in topic.partition_data],
            )
            for topic in request.topic_data
        ]


def shortest(message: type[Message], version: int) -> bytes:
    """A request with something in it, and yet short enough to try every position."""
    encoded = (bytes(encode(sample(message, version, seed), version)) for seed in range(40))
    return min(
        (one for one in encoded if len(one) > 60),
        key=len,
        default=bytes(encode(sample(message, version, 0), version)),
    )


def test_a_frame_with_another_apis_body_is_refused_or_read() -> None:
    """Every request read as every other: nothing but messages and refusals."""
    for sender, version in REQUEST_VERSIONS[::7]:
        frame = encode_request(sample(sender, version, 1), version, 1, "me")
        _, position = read_request_header(frame, 4)
        for message, other in REQUEST_VERSIONS:
            decoded(message, other, frame[position:])
