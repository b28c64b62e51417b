"""The same legal traffic to grpcio's server and to ours: every stream gets what the model says, from both.

`make soak ARGS="--transport"` runs more of it.
"""

import pytest

from tests.faults.harness import SEED
from tests.faults.transport_oracle import many

pytestmark = pytest.mark.slow

EXAMPLES = 200


@pytest.mark.timeout(600)
def test_both_servers_and_the_model_agree() -> None:
    many(SEED, EXAMPLES)
