"""What makes a change compatible that is not, by what breaks and for whom."""

BACKWARD = "backward"
FORWARD = "forward"

_IN_TWO_STEPS = "release it in two steps"

_ADVICE = {
    ("READER_FIELD_MISSING_DEFAULT_VALUE", BACKWARD): (
        'give the new field a default; for one that may be empty: "type": ["null", ...],'
        ' "default": null'
    ),
    ("READER_FIELD_MISSING_DEFAULT_VALUE", FORWARD): (
        f"keep the field, or {_IN_TWO_STEPS}: a version in which it has a default, then, when all"
        " readers have that, the one without it"
    ),
    ("TYPE_MISMATCH", BACKWARD): (
        "types may only widen (int to long, float or double; long to float or double; float to"
        " double; string and bytes to each other); else add a field of another name, with a"
        " default, and keep this one"
    ),
    ("TYPE_MISMATCH", FORWARD): (
        "old readers take nothing wider than they know: add a field of another name, with a"
        " default, and keep this one; or let all readers change first (level BACKWARD)"
    ),
    ("MISSING_ENUM_SYMBOLS", BACKWARD): (
        "keep the symbols, or give the enum a default symbol, which the missing ones become"
    ),
    ("MISSING_ENUM_SYMBOLS", FORWARD): (
        f"{_IN_TWO_STEPS}: give the enum a default symbol first, which old readers take new symbols"
        " for, then add the symbols"
    ),
    ("MISSING_UNION_BRANCH", BACKWARD): "keep the branch of the union, as old data have it",
    ("MISSING_UNION_BRANCH", FORWARD): (
        f"{_IN_TWO_STEPS}: let all readers have the wider union before anybody writes it (level"
        " BACKWARD)"
    ),
    ("NAME_MISMATCH", BACKWARD): 'keep the name, or name the old one: "aliases": ["OldName"]',
    ("NAME_MISMATCH", FORWARD): "keep the name, as old readers know no other",
    ("FIXED_SIZE_MISMATCH", BACKWARD): "keep the size; add a field with another type of fixed",
    ("FIXED_SIZE_MISMATCH", FORWARD): "keep the size; add a field with another type of fixed",
}
_ADVICE_BY_WORD = (
    ("PACKAGE_CHANGED", "keep the package; another one needs another subject"),
    ("MESSAGE_REMOVED", "keep the message, even where nothing uses it any more"),
    ("REQUIRED", "make the property or field optional, or give it a default"),
    ("ONEOF", "leave fields in the oneof that they are in, and outside if they are outside"),
    ("MOVED_TO", "leave fields in the oneof that they are in, and outside if they are outside"),
    ("FIELD_", "keep the number's type; add a field with a new number, and reserve the old one"),
    ("CLOSED_CONTENT_MODEL", "keep the property, or let the object be open for others"),
    (
        "OPEN_CONTENT_MODEL",
        'readers of an open object let through anything: close it ("additionalProperties": false),'
        " then optional properties may be added",
    ),
    ("ADDITIONAL_PROPERTIES", "let additionalProperties be as it was"),
    ("ENUM_ARRAY", "keep the values that there were"),
    ("TYPE_", "let the type be as it was, or list both types"),
    ("_ADDED", "leave the new limit away, or make it a new property"),
    ("_DECREASED", "keep the limit, or widen it"),
    ("_INCREASED", "keep the limit, or widen it"),
)
_ELSE = "keep it as it was, or take another subject and move the data (headrace schema evolve)"


def advice_for(name: str, direction: str) -> str:
    """What to do about a break, by Confluent's word for it."""
    found = _ADVICE.get((name, direction))
    if found is not None:
        return found
    return next((text for word, text in _ADVICE_BY_WORD if word in name), _ELSE)
