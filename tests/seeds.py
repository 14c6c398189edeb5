"""Which simulations to run: few by default, more or a single one by an environment variable."""

import os


def seeds(usual: int) -> list[int]:
    """The seeds from 0 on; `HEADRACE_SEEDS=1000` asks for so many, `HEADRACE_SEED=17` for one."""
    if one := os.environ.get("HEADRACE_SEED"):
        return [int(one)]
    return list(range(int(os.environ.get("HEADRACE_SEEDS", usual))))
