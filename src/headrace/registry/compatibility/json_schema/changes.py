"""The changes between two schemas by Confluent's names, and which of them readers survive.

The names, the sets and the descriptions are an interface: clients and people search for them.
The first schema of a description is the one that reads, the second the one that wrote.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import TypeAlias


class Change(StrEnum):
    """What differs at one place."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[str]) -> str:
        return name

    ID_CHANGED = auto()
    DESCRIPTION_CHANGED = auto()
    TITLE_CHANGED = auto()
    DEFAULT_CHANGED = auto()
    SCHEMA_ADDED = auto()
    SCHEMA_REMOVED = auto()
    TYPE_EXTENDED = auto()
    TYPE_NARROWED = auto()
    TYPE_CHANGED = auto()

    MAX_LENGTH_ADDED = auto()
    MAX_LENGTH_REMOVED = auto()
    MAX_LENGTH_INCREASED = auto()
    MAX_LENGTH_DECREASED = auto()
    MIN_LENGTH_ADDED = auto()
    MIN_LENGTH_REMOVED = auto()
    MIN_LENGTH_INCREASED = auto()
    MIN_LENGTH_DECREASED = auto()
    PATTERN_ADDED = auto()
    PATTERN_REMOVED = auto()
    PATTERN_CHANGED = auto()

    MAXIMUM_ADDED = auto()
    MAXIMUM_REMOVED = auto()
    MAXIMUM_INCREASED = auto()
    MAXIMUM_DECREASED = auto()
    MINIMUM_ADDED = auto()
    MINIMUM_REMOVED = auto()
    MINIMUM_INCREASED = auto()
    MINIMUM_DECREASED = auto()
    EXCLUSIVE_MAXIMUM_ADDED = auto()
    EXCLUSIVE_MAXIMUM_REMOVED = auto()
    EXCLUSIVE_MAXIMUM_INCREASED = auto()
    EXCLUSIVE_MAXIMUM_DECREASED = auto()
    EXCLUSIVE_MINIMUM_ADDED = auto()
    EXCLUSIVE_MINIMUM_REMOVED = auto()
    EXCLUSIVE_MINIMUM_INCREASED = auto()
    EXCLUSIVE_MINIMUM_DECREASED = auto()
    MULTIPLE_OF_ADDED = auto()
    MULTIPLE_OF_REMOVED = auto()
    MULTIPLE_OF_EXPANDED = auto()
    MULTIPLE_OF_REDUCED = auto()
    MULTIPLE_OF_CHANGED = auto()

    REQUIRED_ATTRIBUTE_ADDED = auto()
    REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED = auto()
    REQUIRED_ATTRIBUTE_REMOVED = auto()
    MAX_PROPERTIES_ADDED = auto()
    MAX_PROPERTIES_REMOVED = auto()
    MAX_PROPERTIES_INCREASED = auto()
    MAX_PROPERTIES_DECREASED = auto()
    MIN_PROPERTIES_ADDED = auto()
    MIN_PROPERTIES_REMOVED = auto()
    MIN_PROPERTIES_INCREASED = auto()
    MIN_PROPERTIES_DECREASED = auto()
    ADDITIONAL_PROPERTIES_ADDED = auto()
    ADDITIONAL_PROPERTIES_REMOVED = auto()
    ADDITIONAL_PROPERTIES_EXTENDED = auto()
    ADDITIONAL_PROPERTIES_NARROWED = auto()
    UNEVALUATED_PROPERTIES_ADDED = auto()
    UNEVALUATED_PROPERTIES_REMOVED = auto()
    UNEVALUATED_PROPERTIES_EXTENDED = auto()
    UNEVALUATED_PROPERTIES_NARROWED = auto()
    DEPENDENCY_ARRAY_ADDED = auto()
    DEPENDENCY_ARRAY_REMOVED = auto()
    DEPENDENCY_ARRAY_EXTENDED = auto()
    DEPENDENCY_ARRAY_NARROWED = auto()
    DEPENDENCY_ARRAY_CHANGED = auto()
    DEPENDENCY_SCHEMA_ADDED = auto()
    DEPENDENCY_SCHEMA_REMOVED = auto()
    REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL = auto()
    PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()

    MAX_ITEMS_ADDED = auto()
    MAX_ITEMS_REMOVED = auto()
    MAX_ITEMS_INCREASED = auto()
    MAX_ITEMS_DECREASED = auto()
    MIN_ITEMS_ADDED = auto()
    MIN_ITEMS_REMOVED = auto()
    MIN_ITEMS_INCREASED = auto()
    MIN_ITEMS_DECREASED = auto()
    MAX_CONTAINS_ADDED = auto()
    MAX_CONTAINS_REMOVED = auto()
    MAX_CONTAINS_INCREASED = auto()
    MAX_CONTAINS_DECREASED = auto()
    MIN_CONTAINS_ADDED = auto()
    MIN_CONTAINS_REMOVED = auto()
    MIN_CONTAINS_INCREASED = auto()
    MIN_CONTAINS_DECREASED = auto()
    UNIQUE_ITEMS_ADDED = auto()
    UNIQUE_ITEMS_REMOVED = auto()
    ADDITIONAL_ITEMS_ADDED = auto()
    ADDITIONAL_ITEMS_REMOVED = auto()
    ADDITIONAL_ITEMS_EXTENDED = auto()
    ADDITIONAL_ITEMS_NARROWED = auto()
    UNEVALUATED_ITEMS_ADDED = auto()
    UNEVALUATED_ITEMS_REMOVED = auto()
    UNEVALUATED_ITEMS_EXTENDED = auto()
    UNEVALUATED_ITEMS_NARROWED = auto()
    ITEM_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_TO_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL = auto()
    ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL = auto()
    ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()
    ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL = auto()

    ENUM_ARRAY_EXTENDED = auto()
    ENUM_ARRAY_NARROWED = auto()
    ENUM_ARRAY_CHANGED = auto()

    COMBINED_TYPE_EXTENDED = auto()
    COMBINED_TYPE_CHANGED = auto()
    COMBINED_TYPE_SUBSCHEMAS_CHANGED = auto()
    PRODUCT_TYPE_EXTENDED = auto()
    PRODUCT_TYPE_NARROWED = auto()
    SUM_TYPE_EXTENDED = auto()
    SUM_TYPE_NARROWED = auto()
    NOT_TYPE_EXTENDED = auto()
    NOT_TYPE_NARROWED = auto()


@dataclass(frozen=True, slots=True)
class Difference:
    """A change and its place, as a path from where the comparison began."""

    change: Change
    path: tuple[str, ...] = ()

    @property
    def pointer(self) -> str:
        return "#/" + "/".join(self.path)

    def described(self, reader: str, writer: str) -> str:
        """One message of a verbose answer; `reader` and `writer` are how it calls the schemas."""
        sentence = DESCRIPTIONS[self.change].format(path=self.pointer, reader=reader, writer=writer)
        return f'{{errorType:"{self.change}", description:"{sentence}"}}'


Differences: TypeAlias = tuple[Difference, ...]


def found(change: Change, *path: str) -> Differences:
    """One difference."""
    return (Difference(change, path),)


def under(path: tuple[str, ...], differences: Differences) -> Differences:
    """Differences of a part, seen from the whole."""
    return tuple(Difference(each.change, path + each.path) for each in differences)


_LOOSENED = (
    *("MAX_LENGTH_INCREASED", "MIN_LENGTH_DECREASED", "MAX_LENGTH_REMOVED", "MIN_LENGTH_REMOVED"),
    *("PATTERN_REMOVED", "MAXIMUM_INCREASED", "MAXIMUM_REMOVED", "MINIMUM_DECREASED"),
    *("MINIMUM_REMOVED", "EXCLUSIVE_MAXIMUM_INCREASED", "EXCLUSIVE_MAXIMUM_REMOVED"),
    *("EXCLUSIVE_MINIMUM_DECREASED", "EXCLUSIVE_MINIMUM_REMOVED", "MULTIPLE_OF_REDUCED"),
    *("MULTIPLE_OF_REMOVED", "MAX_PROPERTIES_INCREASED", "MAX_PROPERTIES_REMOVED"),
    *("MIN_PROPERTIES_DECREASED", "MIN_PROPERTIES_REMOVED", "MAX_ITEMS_INCREASED"),
    *("MAX_ITEMS_REMOVED", "MIN_ITEMS_DECREASED", "MIN_ITEMS_REMOVED", "MAX_CONTAINS_INCREASED"),
    *("MAX_CONTAINS_REMOVED", "MIN_CONTAINS_DECREASED", "MIN_CONTAINS_REMOVED"),
    "UNIQUE_ITEMS_REMOVED",
)

STRICT = frozenset(
    {
        Change.ID_CHANGED,
        Change.DESCRIPTION_CHANGED,
        Change.TITLE_CHANGED,
        Change.DEFAULT_CHANGED,
        Change.SCHEMA_REMOVED,
        Change.TYPE_EXTENDED,
        Change.REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED,
        Change.REQUIRED_ATTRIBUTE_REMOVED,
        Change.DEPENDENCY_ARRAY_NARROWED,
        Change.DEPENDENCY_ARRAY_REMOVED,
        Change.DEPENDENCY_SCHEMA_REMOVED,
        Change.ADDITIONAL_PROPERTIES_ADDED,
        Change.ADDITIONAL_PROPERTIES_EXTENDED,
        Change.UNEVALUATED_PROPERTIES_ADDED,
        Change.UNEVALUATED_PROPERTIES_EXTENDED,
        Change.PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL,
        Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL,
        Change.OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL,
        Change.PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL,
        Change.PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL,
        Change.PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
        Change.PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
        Change.ADDITIONAL_ITEMS_ADDED,
        Change.ADDITIONAL_ITEMS_EXTENDED,
        Change.UNEVALUATED_ITEMS_ADDED,
        Change.UNEVALUATED_ITEMS_EXTENDED,
        Change.ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL,
        Change.ITEM_ADDED_TO_CLOSED_CONTENT_MODEL,
        Change.ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL,
        Change.ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL,
        Change.ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
        Change.ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
        Change.ENUM_ARRAY_EXTENDED,
        Change.COMBINED_TYPE_EXTENDED,
        Change.PRODUCT_TYPE_NARROWED,
        Change.SUM_TYPE_EXTENDED,
        Change.NOT_TYPE_NARROWED,
        *(Change[name] for name in _LOOSENED),
    }
)
"""What every reader survives (`compatibilityPolicy=STRICT`, the default)."""

LENIENT = STRICT | {
    Change.ADDITIONAL_PROPERTIES_NARROWED,
    Change.ADDITIONAL_PROPERTIES_REMOVED,
    Change.UNEVALUATED_PROPERTIES_NARROWED,
    Change.UNEVALUATED_PROPERTIES_REMOVED,
    Change.REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL,
    Change.OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL,
    Change.PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL,
    Change.PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
    Change.PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL,
}
"""Also what readers survive that take an open content model for a closed one (`LENIENT`)."""


_FURTHER = ("ADDITIONAL", "UNEVALUATED")
_PARTS = ("PROPERTIES", "ITEMS")


def _describe() -> dict[Change, str]:
    table: dict[Change, str] = {}

    def are(sentence: str, changes: Iterable[Change]) -> None:
        table.update(dict.fromkeys(changes, sentence))

    def ending(*endings: str) -> list[Change]:
        return [change for change in Change if change.endswith(endings)]

    are(
        "The keyword at path '{path}' in the {reader} schema is not present in the {writer} schema",
        ending("_ADDED", *(f"{each}_{part}_REMOVED" for each in _FURTHER for part in _PARTS)),
    )
    are(
        "The value at path '{path}' in the {reader} schema is more than its value in the {writer} "
        "schema",
        [*ending("_INCREASED"), Change.MULTIPLE_OF_EXPANDED],
    )
    are(
        "The value at path '{path}' in the {reader} schema is less than its value in the {writer} "
        "schema",
        ending("_DECREASED"),
    )
    are(
        "The value at path '{path}' is different between the {reader} and {writer} schema",
        [Change.PATTERN_CHANGED, Change.MULTIPLE_OF_CHANGED, Change.DEPENDENCY_ARRAY_CHANGED],
    )
    are(
        "An array or combined type at path '{path}' has fewer elements in the {reader} schema than "
        "the {writer} schema",
        ending("_NARROWED"),
    )
    are(
        "An array or combined type at path '{path}' has more elements in the {reader} schema than "
        "the {writer} schema",
        ending("_EXTENDED"),
    )
    are(
        "A type at path '{path}' is different between the {reader} schema and the {writer} schema",
        {Change.TYPE_NARROWED, *ending("TYPE_CHANGED", "SUBSCHEMAS_CHANGED", "ENUM_ARRAY_CHANGED")},
    )
    are(
        "The {reader} schema has an open content model and has a property or item at path "
        "'{path}' which is missing in the {writer} schema",
        ending("_ADDED_TO_OPEN_CONTENT_MODEL"),
    )
    are(
        "The {reader} schema has an unopen content model and has a required property at path "
        "'{path}' which is missing in the {writer} schema",
        [Change.REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL],
    )
    are(
        "The {reader} has a closed content model and is missing a property or item present at "
        "path '{path}' in the {writer} schema",
        ending("_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
    )
    are(
        "A property or item is missing in the {reader} schema but present at path '{path}' in the "
        "{writer} schema and is not covered by its partially open content model",
        ending("_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
    )
    are(
        "The {reader} schema has a property or item at path '{path}' which is missing in the "
        "{writer} schema and is not covered by its partially open content model",
        ending("_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),
    )
    return table


DESCRIPTIONS = _describe()
"""A sentence for each change that some reader does not survive."""
