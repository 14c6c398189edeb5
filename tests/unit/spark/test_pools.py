"""The pools of Spark's scheduler."""

from xml.etree import ElementTree

import pytest

from headrace.spark.pools import ALLOCATIONS, BATCH, PATIENT, STREAMS, URGENT, pool_of
from headrace.spark.session import SETTINGS


@pytest.mark.parametrize(("priority", "pool"), [(5, URGENT), (0, STREAMS), (-1, PATIENT)])
def test_a_priority_chooses_the_pool(priority: int, pool: str) -> None:
    assert pool_of(priority) == pool


def test_urgent_streams_get_more_and_both_streams_and_batches_have_a_share() -> None:
    """ARC-5, ARC-7: `test_pool_preemption.py` shows that they get it."""
    pools = {pool.attrib["name"]: pool for pool in ElementTree.parse(ALLOCATIONS).getroot()}
    weights = {name: int(pool.findtext("weight") or 0) for name, pool in pools.items()}
    assert weights[URGENT] > weights[STREAMS] > weights[PATIENT]
    shares = {name: int(pool.findtext("minShare") or 0) for name, pool in pools.items()}
    assert shares[URGENT] > shares[STREAMS] > shares[PATIENT] == 0
    assert shares[BATCH] >= 1
    assert SETTINGS["spark.scheduler.allocation.file"] == str(ALLOCATIONS)
