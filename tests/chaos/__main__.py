"""Faults under load: `python -m tests.chaos --seconds 120 --seed 7`.

Starts three nodes, loads them with clients of all kinds, kills, pauses, stops and cuts off nodes
for a time, and then checks what the clients saw. The exit code is 1 after any anomaly, or if the
cluster does not become healthy.
"""

import argparse
import logging
import random
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.faults import KILLS, OF_NETWORKS, OF_PROCESSES
from tests.chaos.networks import Networks, NoNamespaces, networks
from tests.chaos.run import Plan, run


def main() -> int:
    parser = argparse.ArgumentParser(description="Faults under load.")
    parser.add_argument("--seconds", type=float, default=60.0, help="the time of faults")
    parser.add_argument("--seed", type=int, help="repeats the faults of a run")
    parser.add_argument("--rate", type=float, default=100.0, help="records/s of each producer")
    parser.add_argument("--kills", action="store_true", help="only kill -9 of single nodes")
    parser.add_argument("--no-namespaces", action="store_true", help="no faults of networks")
    parser.add_argument("--keep", type=Path, help="a directory for the data and the logs of nodes")
    given = parser.parse_args()
    seed = random.randrange(1_000_000) if given.seed is None else given.seed
    logging.basicConfig(level=logging.CRITICAL)  # Clients log every lost connection.
    # A stopped run removes its namespaces, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ExitStack() as stack:
        directory = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(parents=True, exist_ok=True)
        weights = dict.fromkeys(KILLS, 1) if given.kills else dict(OF_PROCESSES)
        made: Networks | None = None
        if not given.kills and not given.no_namespaces:
            try:
                made = stack.enter_context(networks(3))
                weights |= OF_NETWORKS
            except NoNamespaces as error:
                print(f"No faults of networks: {error}")
        report = run(Plan(directory, seed, given.seconds, given.rate, weights, made), print)
    print("\n".join(report.lines()))
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
