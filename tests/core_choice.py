"""Whether stores of tests use the compiled core: as ``TANDEM_TEST_CORE`` says, where a test itself says nothing.

CI's campaigns say ``always``, so that a store that cannot use it fails. Without the variable it is ``auto``: the core
is taken where it is built.
"""

import os

from tandemmq.store.settings import CoreChoice


def core_choice() -> CoreChoice:
    """ValueError for what is no choice."""
    return CoreChoice(os.environ.get("TANDEM_TEST_CORE", CoreChoice.AUTO))
