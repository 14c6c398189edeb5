"""Set-up that all tests share: how long hypothesis searches."""

import os

from hypothesis import HealthCheck, settings

# The shared machines of continuous integration are slow at times, so no example has a deadline.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
