"""Payloads to typed columns: JSON, CSV, Avro, Protobuf, by a schema or by a registry."""

from headrace.spark.decoding.decoder import Decoded, Decoder
from headrace.spark.decoding.errors import (
    DecodingError,
    InvalidFormatOption,
    InvalidSchema,
    RegistryUnavailable,
)
from headrace.spark.decoding.options import decoder_of

__all__ = [
    "Decoded",
    "Decoder",
    "DecodingError",
    "InvalidFormatOption",
    "InvalidSchema",
    "RegistryUnavailable",
    "decoder_of",
]
