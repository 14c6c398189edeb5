"""In which format payloads are whose schema a registry has, guessed without asking one.

Nothing in them says so: in front they have the id of the schema, and no more.
"""

from collections.abc import Iterable


def registered_format(payloads: Iterable[bytes]) -> str:
    """What is behind the schema ids of these payloads: avro, json or protobuf.

    JSON is known by its looks, and Protobuf by fields that go on to the very end of each payload,
    which those of Avro hardly ever do.
    """
    contents = [payload[5:] for payload in payloads]
    if all(content.lstrip()[:1] in (b"{", b"[") for content in contents):
        return "json"
    return "protobuf" if all(map(_is_protobuf, contents)) else "avro"


def _is_protobuf(content: bytes) -> bool:
    """Whether it is the numbers that name a message of a schema, and then the message's fields."""
    try:
        count, at = _varint(content, 0)
        for _ in range(count >> 1):  # Zigzag; 0 stands for the first message.
            _, at = _varint(content, at)
        while at < len(content):
            tag, at = _varint(content, at)
            at = _behind_field(content, tag, at)
    except (IndexError, ValueError):
        return False
    return at == len(content) and not count & 1


def _behind_field(content: bytes, tag: int, at: int) -> int:
    if not 0 < tag >> 3 < 1 << 29:
        raise ValueError("no number of a field")
    match tag & 7:
        case 0:
            return _varint(content, at)[1]
        case 1:
            return at + 8
        case 2:
            size, at = _varint(content, at)
            return at + size
        case 5:
            return at + 4
    raise ValueError("no type of a field")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of Protobuf's, and where it ends."""
    value = 0
    for place in range(10):
        byte = content[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("no number")
