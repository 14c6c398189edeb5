"""Changes of strings, numbers and lists of values, and of any keyword that is a bound."""

from decimal import Decimal

from headrace.registry.compatibility.json_schema.changes import Change, Differences, found
from headrace.registry.compatibility.json_schema.nodes import (
    Constant,
    Number,
    Quantity,
    Text,
    Values,
)


def texts(old: Text, new: Text) -> Differences:
    return (
        bound("maxLength", "MAX_LENGTH", old.length_max, new.length_max)
        + bound("minLength", "MIN_LENGTH", old.length_min, new.length_min)
        + _patterns(old.pattern, new.pattern)
    )


def numbers(old: Number, new: Number) -> Differences:
    return (
        bound("maximum", "MAXIMUM", old.maximum, new.maximum)
        + bound("minimum", "MINIMUM", old.minimum, new.minimum)
        + bound(
            "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", old.exclusive_maximum, new.exclusive_maximum
        )
        + bound(
            "exclusiveMinimum", "EXCLUSIVE_MINIMUM", old.exclusive_minimum, new.exclusive_minimum
        )
        + _multiples(old.multiple_of, new.multiple_of)
        + _integers(was=old.is_integer, now=new.is_integer)
    )


def values(old: Values, new: Values) -> Differences:
    if old.values == new.values:
        return ()
    if old.values < new.values:
        return found(Change.ENUM_ARRAY_EXTENDED, "enum")
    if old.values > new.values:
        return found(Change.ENUM_ARRAY_NARROWED, "enum")
    return found(Change.ENUM_ARRAY_CHANGED, "enum")


def constants(old: Constant, new: Constant) -> Differences:
    return () if old.value == new.value else found(Change.ENUM_ARRAY_CHANGED, "const")


def bound(keyword: str, name: str, old: Quantity | None, new: Quantity | None) -> Differences:
    """Compare a keyword with a number; its four changes share a prefix."""
    if old == new:
        return ()
    if old is None:
        step = "ADDED"
    elif new is None:
        step = "REMOVED"
    else:
        step = "INCREASED" if old < new else "DECREASED"
    return found(Change[f"{name}_{step}"], keyword)


def _patterns(old: str | None, new: str | None) -> Differences:
    if old == new:
        return ()
    if old is None:
        return found(Change.PATTERN_ADDED, "pattern")
    return found(Change.PATTERN_REMOVED if new is None else Change.PATTERN_CHANGED, "pattern")


def _multiples(old: Quantity | None, new: Quantity | None) -> Differences:
    """Compare `multipleOf`: a divisor of the old value accepts all old data."""
    if old == new:
        return ()
    if old is None:
        change = Change.MULTIPLE_OF_ADDED
    elif new is None:
        change = Change.MULTIPLE_OF_REMOVED
    elif Decimal(new) % Decimal(old) == 0:
        change = Change.MULTIPLE_OF_EXPANDED
    elif Decimal(old) % Decimal(new) == 0:
        change = Change.MULTIPLE_OF_REDUCED
    else:
        change = Change.MULTIPLE_OF_CHANGED
    return found(change, "multipleOf")


def _integers(*, was: bool, now: bool) -> Differences:
    if was == now:
        return ()
    return found(Change.TYPE_EXTENDED if was else Change.TYPE_NARROWED)
