"""The metrics of the audit log."""

from collections.abc import Iterator

from headrace.runtime.exposition import Family, Sample, counter, labels
from headrace.security.audit import AuditCounts


def audit_families(counts: AuditCounts) -> Iterator[Family]:
    """Yield the events that were written, and those that were dropped, by reason."""
    yield counter("headrace_audit_events_written_total", "Audit events written.", counts.written)
    dropped = {
        "rate": counts.rate_limited,
        "queue": counts.overflowed,
        "write": counts.lost,
    }
    yield Family(
        "headrace_audit_events_dropped_total",
        "counter",
        "Audit events dropped: above the rate of a principal, without room, or not written.",
        [Sample(count, labels(reason=reason)) for reason, count in dropped.items()],
    )
