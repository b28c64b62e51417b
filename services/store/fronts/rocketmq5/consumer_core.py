"""ConsumerCore: what of the compiled core serves consumers."""

from typing import NamedTuple

from tandemmq.store.fronts.rocketmq5.acks import AckCore
from tandemmq.store.fronts.rocketmq5.given_messages import GivenCore


class ConsumerCore(NamedTuple):
    """The compiled twins of `given_message` and `acks`."""

    given: GivenCore
    acks: AckCore
