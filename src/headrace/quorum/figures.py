"""Figures of the metadata half of a node at one moment, and the durations it has measured."""

from typing import NamedTuple

from headrace.metadata.image import MetadataImage
from headrace.runtime.durations import Durations


class QuorumFigures(NamedTuple):
    """Figures of the raft replica and of the controller on top."""

    state: str
    """leader, follower, prospective, candidate, resigned, unattached or observer."""
    leader_id: int
    epoch: int
    high_watermark: int
    end_offset: int
    voter_count: int
    applied_offset: int
    is_active_controller: bool
    commits: Durations
    elections: Durations


def broker_counts(image: MetadataImage) -> tuple[int, int]:
    """Return the numbers of unfenced and of fenced brokers."""
    fenced = sum(broker.fenced for broker in image.brokers.values())
    return len(image.brokers) - fenced, fenced
