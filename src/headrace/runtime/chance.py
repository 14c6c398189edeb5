"""The door to chance, which a simulation replaces to repeat a run.

Callers use the module (`chance.urandom(...)`), as with `files`.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

urandom = os.urandom


def new_random() -> "Random":
    """Return a source of random numbers with a seed of its own."""
    from random import Random  # Slow to import.

    return Random(urandom(16))
