"""Valid Python names for classes, fields and members with other names in data."""

import builtins
import keyword as python
from enum import Enum

from headrace.serdes.classes.model import Record, Shape


class Flavour(Enum):
    """The kind of generated classes."""

    DATACLASS = "dataclass"
    PYDANTIC = "pydantic"
    MSGSPEC = "msgspec"


HOMES = {
    "Any": "typing",
    "Annotated": "typing",
    "Literal": "typing",
    "date": "datetime",
    "time": "datetime",
    "datetime": "datetime",
    "timedelta": "datetime",
    "UTC": "datetime",
    "Decimal": "decimal",
    "UUID": "uuid",
    "StrEnum": "enum",
    "IntEnum": "enum",
    "dataclass": "dataclasses",
    "BaseModel": "pydantic",
    "ConfigDict": "pydantic",
    "Field": "pydantic",
    "Struct": "msgspec",
    "Wire": "headrace.serdes.classes",
    "named": "headrace.serdes.classes",
}
"""Modules from which generated code imports names."""

# Names that fields must not have: a field with a default would hide the type of the next one.
_TAKEN = {*HOMES, "field", "bool", "bytes", "dict", "float", "int", "list", "str"}
_TAKEN_BY_MODELS = {
    *("copy", "dict", "json", "schema", "construct", "validate", "parse_obj", "parse_raw"),
    *("parse_file", "from_orm", "schema_json", "update_forward_refs"),
}


def class_names(shape: Shape) -> dict[str, str]:
    """Return a class name for each definition, without its namespace."""
    names = [identifier(name.rpartition(".")[2], "Record") for name in shape.definitions]
    taken = {*HOMES, *dir(builtins)}
    names = [f"{name}_" if name in taken else name for name in names]
    return dict(zip(shape.definitions, unique(names), strict=True))


def attributes(record: Record, flavour: Flavour, classes: set[str]) -> dict[str, str]:
    """Return an attribute for each field, by the field's name in data."""
    taken = _TAKEN | classes
    if flavour is Flavour.PYDANTIC:
        taken |= _TAKEN_BY_MODELS
    names: list[str] = []
    for field in record.fields:
        name = identifier(field.name, "field")
        clashes = name in taken or (flavour is Flavour.PYDANTIC and name.startswith("model_"))
        names.append(f"{name}_" if clashes else name)
    return dict(zip([field.name for field in record.fields], unique(names), strict=True))


def identifier(name: str, prefix: str) -> str:
    """Return a valid Python identifier that is not a keyword."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
    kept = kept.strip("_") if kept.startswith("_") else kept
    if not kept or not kept[0].isalpha():
        kept = f"{prefix}_{kept}".rstrip("_")
    is_taken = prefix == "member" and kept in ("mro", "name", "value")
    return f"{kept}_" if is_taken or python.iskeyword(kept) else kept


def unique(names: list[str]) -> list[str]:
    """Append numbers to repeated names."""
    taken: set[str] = set()
    for index, name in enumerate(names):
        count = 2
        while names[index] in taken:
            names[index] = f"{name}_{count}"
            count += 1
        taken.add(names[index])
    return names
