"""What Python sees of fact_codec.py."""

from collections.abc import Mapping, Sequence

from tandemmq.store.delivery.journal.facts import Dealt, Fact, Given, Moved, Place

def encode_run(
    facts: Sequence[Fact], first: int, given: type, dealt: type, places: Mapping[Place, int], room: int
) -> tuple[int, bytes]: ...
def decode_places(
    body: bytes, at: int, most: int, names: list[str], place: type[Place], /
) -> tuple[int, list[Place]]: ...
def decode_run(
    body: bytes, at: int, most: int, places: list[Place], given: type[Given], dealt: type[Dealt], moved: type[Moved], /
) -> tuple[int, list[Fact]]: ...
