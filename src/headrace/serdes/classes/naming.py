"""Names that Python takes, for classes, fields and members that are called otherwise in data."""

import builtins
import keyword as python
from enum import Enum

from headrace.serdes.classes.model import Record, Shape


class Flavour(Enum):
    """What kind of classes are written."""

    DATACLASS = "dataclass"
    PYDANTIC = "pydantic"
    MSGSPEC = "msgspec"


HOMES = {
    "Any": "typing",
    "Annotated": "typing",
    "Literal": "typing",
    "Union": "typing",
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
"""Where generated modules import what they use from."""

# What fields must not be called: a field with a default would hide the type of the next one.
_TAKEN = {*HOMES, "field", "bool", "bytes", "dict", "float", "int", "list", "str"}
_TAKEN_BY_MODELS = {
    *("copy", "dict", "json", "schema", "construct", "validate", "parse_obj", "parse_raw"),
    *("parse_file", "from_orm", "schema_json", "update_forward_refs"),
}


def class_names(shape: Shape) -> dict[str, str]:
    """A class name for each definition, without its namespace."""
    names = [identifier(name.rpartition(".")[2], "Record") for name in shape.definitions]
    taken = {*HOMES, *dir(builtins)}
    names = [f"{name}_" if name in taken else name for name in names]
    return dict(zip(shape.definitions, unique(names), strict=True))


def attributes(record: Record, flavour: Flavour, classes: set[str]) -> dict[str, str]:
    """An attribute for each field, by the name of the field in data."""
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
    """A name that Python takes: it has letters, begins with one, and is no word of the language."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
    kept = kept.strip("_") if kept.startswith("_") else kept
    if not kept or not kept[0].isalpha():
        kept = f"{prefix}_{kept}".rstrip("_")
    is_taken = prefix == "member" and kept in ("mro", "name", "value")
    return f"{kept}_" if is_taken or python.iskeyword(kept) else kept


def unique(names: list[str]) -> list[str]:
    """The names, with numbers where one comes again."""
    taken: set[str] = set()
    for index, name in enumerate(names):
        count = 2
        while names[index] in taken:
            names[index] = f"{name}_{count}"
            count += 1
        taken.add(names[index])
    return names
