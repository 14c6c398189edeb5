"""Compilation of the decoders of records and payloads into numba's cache, for the first pipeline.

It takes half a CPU minute, and workers that start together would each do it.
"""

from importlib import import_module
from importlib.util import find_spec

import pyarrow as pa

from headrace.spark.decoding.formats import decoder_of

_COLUMNS = "n BIGINT, i INT, x DOUBLE, t STRING, at TIMESTAMP, day DATE, is_so BOOLEAN"
_NESTED = "price DECIMAL(10, 2), many ARRAY<INT>, one STRUCT<x: INT>, named MAP<STRING, STRING>"
_AVRO = """{"type": "record", "name": "sample", "fields": [
  {"name": "n", "type": "long"}, {"name": "t", "type": "string"}, {"name": "x", "type": "double"}
]}"""
SAMPLES: tuple[tuple[dict[str, str], bytes], ...] = (
    (
        {"format": "json", "schema": f"{_COLUMNS}, {_NESTED}"},
        b'{"n": 1, "i": 1, "x": 2.5, "t": "a", "at": "2026-01-01T00:00:00Z", "day": "2026-01-01",'
        b' "is_so": true, "price": 1.5, "many": [1], "one": {"x": 1}, "named": {"a": "b"}}',
    ),
    (
        {"format": "csv", "schema": _COLUMNS},
        b"1,1,2.5,a,2026-01-01T00:00:00Z,2026-01-01,true",
    ),
    ({"format": "avro", "schema": _AVRO}, b"\x02\x02a" + bytes(8)),
)
"""A payload with a value of each type for each format with compiled code."""


def compile_decoders() -> bool:
    """Compile all that is not cached; return False if numba is not installed."""
    if find_spec("numba") is None:
        return False
    import_module("headrace.spark.source.compiled")
    for options, payload in SAMPLES:
        decoder = decoder_of(options)
        assert decoder is not None, "samples name a format"
        decoder.decode(pa.array([payload, b"{"], pa.binary()))
    return True


if __name__ == "__main__":
    compile_decoders()
