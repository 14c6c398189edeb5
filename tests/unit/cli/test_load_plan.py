"""Shares of a load, and its combined results."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.bench import progress_text
from headrace.cli.histogram import Histogram
from headrace.cli.load_plan import Done, LoadPlan, LoadProgress, WorkerShare, combined

counts = st.integers(1, 20)


def plan(
    *,
    records: int | None = 1000,
    producers: int = 1,
    consumers: int = 1,
    partitions: int = 1,
    rate: float | None = None,
) -> LoadPlan:
    return LoadPlan(
        bootstrap="broker:9092",
        topic="load",
        records=records,
        duration_s=None,
        size_bytes=100,
        rate=rate,
        acks="all",
        compression="none",
        linger_ms=5,
        keys=0,
        producers=producers,
        consumers=consumers,
        partitions=partitions,
    )


def done(records: int, seconds: float, *latencies_us: int, **errors: int) -> Done:
    latencies = Histogram()
    for latency_us in latencies_us:
        latencies.add(latency_us)
    failed = sum(errors.values())
    return Done(records, records * 100, failed, seconds, latencies, errors)


@given(records=st.integers(0, 10_000), producers=counts)
def test_producers_send_all_records_and_no_more(records: int, producers: int) -> None:
    whole = plan(records=records, producers=producers)
    shares = [WorkerShare(whole, index).records or 0 for index in range(producers)]
    assert sum(shares) == records
    assert max(shares) - min(shares) <= 1


@given(consumers=counts, partitions=counts)
def test_every_partition_is_read_and_no_consumer_idles(consumers: int, partitions: int) -> None:
    whole = plan(consumers=consumers, partitions=partitions)
    shares = [WorkerShare(whole, index).partitions for index in range(consumers)]
    assert all(shares)
    assert {partition for share in shares for partition in share} == set(range(partitions))


def test_the_rate_is_shared() -> None:
    assert WorkerShare(plan(producers=4, rate=1000), 0).rate == 250


def test_results_of_workers_that_ran_together_are_added() -> None:
    result = combined([done(100, 2.0, 1000), done(300, 4.0, 3000, 5000, timeout=2)])
    assert (result.records, result.failed, result.seconds) == (400, 2, 4.0)
    assert (result.records_per_s, result.mb_per_s) == (100.0, 0.01)
    assert result.latency_ms is not None
    assert (result.latency_ms.max, result.latency_ms.samples) == (5.0, 3)
    assert result.errors == {"timeout": 2}


def test_the_live_line_shows_both_sides() -> None:
    line = progress_text(plan(), LoadProgress(500, 50_000), LoadProgress(400, 40_000), 2.0)
    assert line == (
        "  2.0 s | produced 500 of 1,000, 250/s, 0.0 MB/s | consumed 400 of 1,000, 200/s, 0.0 MB/s"
    )


def test_the_live_line_fits_a_narrow_terminal() -> None:
    line = progress_text(
        plan(), LoadProgress(500, 50_000), LoadProgress(400, 40_000), 2.0, width=79
    )
    assert line == "  2.0 s | produced 500 (50%) 250/s | consumed 400 (40%) 200/s"
