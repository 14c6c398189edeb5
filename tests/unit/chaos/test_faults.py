"""The schedule of `make chaos`: made from its seed alone."""

from tests.chaos.faults import OF_NETWORKS, OF_PROCESSES, schedule


def test_a_seed_repeats_its_faults() -> None:
    assert schedule(7, 60, OF_PROCESSES) == schedule(7, 60, OF_PROCESSES)


def test_another_seed_makes_other_faults() -> None:
    assert schedule(7, 60, OF_PROCESSES) != schedule(8, 60, OF_PROCESSES)


def test_faults_begin_within_the_time_of_the_storm() -> None:
    times = [fault.at_s for fault in schedule(7, 60, OF_PROCESSES)]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] < 60


def test_a_long_storm_has_faults_of_every_kind() -> None:
    weights = OF_PROCESSES | OF_NETWORKS
    assert {fault.kind for fault in schedule(7, 3600, weights)} == set(weights)
