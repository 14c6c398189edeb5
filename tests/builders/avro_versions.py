"""Versions of one Avro record, as a subject would have them."""

from typing import Any

import msgspec

from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.schema import AvroSchema


def order_text(*fields: dict[str, Any], name: str = "Order") -> str:
    return msgspec.json.encode({"type": "record", "name": name, "fields": fields}).decode()


def order(*fields: dict[str, Any], name: str = "Order") -> AvroSchema:
    return parse(order_text(*fields, name=name))


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
EMAIL = {"name": "email", "type": "string"}

V1 = order(ID)
WITH_NOTE = order(ID, NOTE)
WITH_EMAIL = order(ID, EMAIL)
