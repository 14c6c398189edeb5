"""The metrics of a registry."""

from collections.abc import Iterator

from headrace.http.metrics import HttpMetrics, answer_families
from headrace.registry.log.store import Store
from headrace.runtime.exposition import Family, counter, gauge
from headrace.runtime.process import process_families

_PREFIX = "headrace_registry"


class RegistryMetrics:
    """Plain integers, changed in the event loop only."""

    def __init__(self) -> None:
        self.http = HttpMetrics()
        self.quick_answers = 0
        self.forwarded = 0
        self.written = 0


def families(
    metrics: RegistryMetrics, store: Store, *, is_leader: bool, has_leader: bool
) -> Iterator[Family]:
    subjects = store.state.subjects
    yield from answer_families(_PREFIX, metrics.http)
    for name, help, value in (
        ("quick_answers", "Schemas by id answered from ready bytes.", metrics.quick_answers),
        ("forwarded", "Writes forwarded to the leader.", metrics.forwarded),
        ("records_written", "Records written.", metrics.written),
        ("records_skipped", "Unreadable records of the topic.", store.skipped),
    ):
        yield counter(f"{_PREFIX}_{name}_total", help, value)
    versions = sum(map(len, subjects.values()))
    for name, help, value in (
        ("next_offset", "The offset up to which the topic is read.", store.next_offset),
        ("leader", "1 if this instance leads.", int(is_leader)),
        ("leader_known", "1 if the leader is known.", int(has_leader)),
        ("subjects", "Subjects, including deleted ones.", len(subjects)),
        ("versions", "Versions of all subjects, including deleted ones.", versions),
    ):
        yield gauge(f"{_PREFIX}_{name}", help, value)
    yield from process_families()
