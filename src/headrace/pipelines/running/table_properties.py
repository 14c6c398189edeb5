"""Which properties a table gets when a run begins, and which it loses again.

A property that is no longer declared is taken off if it is still as the pipeline has put it. What
others have set, another writer or someone by hand, stays: the catalog says what was ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.lake.catalog import PROPERTIES
from headrace.lake.metadata import APPEND_ONLY, is_append_only
from headrace.pipelines.analysing.standing_tables import is_for_new_tables
from headrace.pipelines.model import RAW
from headrace.pipelines.names import zone_of
from headrace.pipelines.problems import PipelineError


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """What a table that is there is to be given, and what is to be taken off it."""

    put: Mapping[str, str]
    dropped: frozenset[str]
    ours: Mapping[str, str]
    """What the pipeline has put there, once this is done."""


def wanted_properties(name: str, declared: Mapping[str, str]) -> dict[str, str]:
    """What a declaration asks for, and the table's zone."""
    unknown = [key for key in declared if not key.startswith("delta.")]
    if unknown:
        raise PipelineError(
            f"{name}: {', '.join(unknown)} is no property of a Delta table; they begin with"
            " `delta.`, as delta.logRetentionDuration does"
        )
    only_grows = zone_of(name) == RAW or is_append_only(declared)
    return {**declared, **(APPEND_ONLY if only_grows else {})}


def property_change(
    standing: Mapping[str, str], wanted: Mapping[str, str], ours: Mapping[str, str]
) -> PropertyChange:
    """The way from what a table has to what is wanted; `ours` is what was put there before.

    What every table of ours has from the start comes back in the place of what is taken off.
    """
    gone = {
        key
        for key, value in ours.items()
        if key not in wanted and standing.get(key) == value and not is_for_new_tables(key)
    }
    usual = {key: PROPERTIES[key] for key in gone if key in PROPERTIES}
    return PropertyChange(
        put={**usual, **wanted},
        dropped=frozenset(gone - usual.keys()),
        ours={
            key: value
            for key, value in wanted.items()
            if standing.get(key) != value or ours.get(key) == value
        },
    )
