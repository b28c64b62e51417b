"""What Python sees of fact_codec.py."""

from collections.abc import Mapping, Sequence

from tandemmq.store.delivery.journal.facts import Fact, Place

def encode_run(
    facts: Sequence[Fact], first: int, given: type, dealt: type, places: Mapping[Place, int], room: int
) -> tuple[int, bytes]: ...
