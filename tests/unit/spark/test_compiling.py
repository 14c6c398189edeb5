"""Compilation ahead of time: samples that the decoders read."""

import pyarrow as pa
import pytest

from headrace.spark.compiling import SAMPLES, compile_decoders
from headrace.spark.decoding.formats import decoder_of


@pytest.mark.parametrize(("options", "payload"), SAMPLES)
def test_every_column_of_a_sample_has_a_value(options: dict[str, str], payload: bytes) -> None:
    """One that has none is read by no code of its type, and nothing is compiled for it."""
    decoder = decoder_of(options)
    assert decoder is not None
    decoded = decoder.decode(pa.array([payload], pa.binary()))
    assert decoded.errors.null_count == 1, decoded.errors
    assert None not in decoded.columns.to_pylist()[0].values()


def test_without_numba_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.spark.compiling.find_spec", lambda _: None)
    assert not compile_decoders()
