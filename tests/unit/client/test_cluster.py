"""The client's view of a broker: what it is given."""

import pytest

from tandemmq.client.cluster import Cluster


def test_arguments_that_nobody_knows_are_named() -> None:
    with pytest.raises(TypeError, match="there is no argument colour, retries"):
        Cluster("127.0.0.1:8081", user="alice", retries=3, colour="red")
