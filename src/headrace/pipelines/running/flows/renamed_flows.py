"""Checks for renamed flows and tables.

A renamed flow has a new checkpoint, which begins at the start of its inputs. Rows that the flow has
written under its former name would be duplicated. So a new flow is rejected if a flow that is no
longer declared has written rows of the same inputs to its table.
"""

from collections.abc import Collection, Iterable

from headrace.lake.tables import Table
from headrace.pipelines.declaring.names import is_source
from headrace.pipelines.model import Source
from headrace.pipelines.running.errors import StateDisagrees
from headrace.pipelines.running.state.folders import FlowState
from headrace.spark import checkpoints


def check_not_renamed(
    flow: str, state: FlowState, table: Table, former: Iterable[FlowState], reads: Collection[str]
) -> None:
    """Reject a new flow whose rows a former flow has written to its table."""
    for old in former:
        if table.last_batch(old.writer()) is None:
            continue
        both = sorted(read_by(old) & set(reads))
        if both:
            name = old.directory.parent.name
            raise StateDisagrees(
                f"{table.name} has rows of {', '.join(both)} from the flow {name}, which is no"
                f" longer declared, and the flow {flow} would write them again. If it was"
                f" renamed, call it {name} again, or rename the folder {old.directory.parent} to"
                f" {state.directory.parent.name}. If it is another flow, rebuild {table.name}"
                " with `headrace pipelines replay FOLDER`; or remove the folder, and"
                f" {flow} reads everything from its start"
            )


def changed_input(flow: str, state: FlowState, reads: Collection[str]) -> str | None:
    """Return the problem of a checkpoint for tables that a flow no longer reads, or None."""
    ranges = checkpoints.ranges(state.checkpoint, checkpoints.newest_plan(state.checkpoint))
    gone = sorted(ranges.inputs.keys() - set(reads))
    if not gone:
        return None
    now = sorted(name for name in reads if not is_source(name))
    return (
        f"the checkpoint of the flow {flow} is for {', '.join(gone)}, and the flow now reads"
        f" {', '.join(now) or 'topics only'}. Rebuild the tables with `headrace pipelines replay"
        " FOLDER`, or read the former table again"
    )


def read_by(state: FlowState) -> set[str]:
    """Return the topics and tables that a flow has read, by its checkpoint."""
    ranges = checkpoints.ranges(state.checkpoint, checkpoints.newest_plan(state.checkpoint))
    return {*ranges.offsets, *ranges.inputs}


def topics_and_tables(reads: Iterable[str], sources: Iterable[Source]) -> set[str]:
    """Return a flow's inputs as checkpoints name them; topics of a pattern are unknown."""
    topics = {f"sources.{one.name}": one for one in sources if one.topic_pattern is None}
    found: set[str] = set()
    for name in reads:
        if not is_source(name):
            found.add(name)
        elif name in topics:
            found.update((topics[name].topic or topics[name].name).split(","))
    return found
