"""Whether a table, or a flow to a topic, may have to put rows aside."""

from collections.abc import Sequence

from headrace.pipelines.model import ERROR, Expectation, Violation


def may_refuse(
    names: Sequence[str], expectations: Sequence[Expectation], *, sets_aside: bool
) -> bool:
    """Whether rows with these columns, or records that they are made of, may be refused."""
    is_refusing = any(e.on_violation is Violation.QUARANTINE for e in expectations)
    return sets_aside or is_refusing or ERROR in names
