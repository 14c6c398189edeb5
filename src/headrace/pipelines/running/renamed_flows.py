"""A flow under another name has a checkpoint of its own, and begins at the beginning.

If the table has these rows from the flow that had the name before, they would come twice. So a new
flow is refused where one that is no longer declared has written to its table out of what it reads.
"""

from collections.abc import Collection, Iterable

from headrace.lake.tables import Table
from headrace.pipelines.model import Source
from headrace.pipelines.names import is_source
from headrace.pipelines.running.errors import StateDisagrees
from headrace.pipelines.running.state import FlowState
from headrace.spark import checkpoints


def check_not_renamed(
    flow: str, state: FlowState, table: Table, former: Iterable[FlowState], reads: Collection[str]
) -> None:
    """Refuse a new flow that would bring what a former one has brought into its table."""
    for old in former:
        if table.last_batch(old.writer()) is None:
            continue
        both = sorted(read_by(old) & set(reads))
        if both:
            name = old.directory.parent.name
            raise StateDisagrees(
                f"{table.name} has rows of {', '.join(both)} from the flow {name}, which is no"
                f" longer declared, and the flow {flow} would bring them once more. If it was"
                f" renamed, call it {name} again, or rename the folder {old.directory.parent} to"
                f" {state.directory.parent.name}. If it is another one, build {table.name} anew"
                f" with `headrace pipelines replay FOLDER`; or remove the folder, and {flow} reads"
                " everything from its start"
            )


def read_by(state: FlowState) -> set[str]:
    """The topics and tables that a flow has read, by its checkpoint."""
    ranges = checkpoints.ranges(state.checkpoint, checkpoints.newest_plan(state.checkpoint))
    return {*ranges.offsets, *ranges.inputs}


def topics_and_tables(reads: Iterable[str], sources: Iterable[Source]) -> set[str]:
    """What a flow reads, by the names that checkpoints have; topics of a pattern are not known."""
    topics = {f"sources.{one.name}": one for one in sources if one.topic_pattern is None}
    found: set[str] = set()
    for name in reads:
        if not is_source(name):
            found.add(name)
        elif name in topics:
            found.update((topics[name].topic or topics[name].name).split(","))
    return found
