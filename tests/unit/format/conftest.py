"""Hypothesis without a deadline: the first call of a kernel loads or compiles it."""

from hypothesis import settings

settings.register_profile("format", deadline=None)
settings.load_profile("format")
