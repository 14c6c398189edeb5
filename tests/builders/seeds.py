"""Which simulations to run: few by default, more or a single one by an environment variable."""

import os


def seeds(usual: int) -> list[int]:
    """The seeds from 0 on; HEADRACE_SEEDS sets their number, and HEADRACE_SEED selects one."""
    if one := os.environ.get("HEADRACE_SEED"):
        return [int(one)]
    return list(range(int(os.environ.get("HEADRACE_SEEDS", usual))))
