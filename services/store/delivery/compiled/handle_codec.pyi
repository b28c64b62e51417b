"""What Python sees of handle_codec.py."""

from collections.abc import Callable, Sequence
from typing import Any

from tandemmq.common.errors import TandemError
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.progress import OpenEntry
from tandemmq.store.delivery.port import GivenMessage, Outcome

def encode(
    prefix: str, check: int, shown: int, queue: int, offset: int, number: int, resets: int, start: int
) -> str: ...
def encode_run(
    prefix: str, check: int, queue: int, offsets: list[int], number: int, resets: int, start: int
) -> list[str]: ...
def give_run(
    prefix: str,
    check: int,
    place: Place,
    numbers: tuple[int, int],
    records: Sequence[tuple[int, bytes]],
    said: tuple[str, int],
    messages: list[GivenMessage],
    shares: list[Any],
    kinds: tuple[type[GivenMessage], type],
) -> int: ...
def decode(text: str, prefix: str, check: int) -> tuple[int, int, int, int, int] | None: ...
def take(
    texts: Sequence[str],
    prefix: str,
    check: int,
    start: int,
    done: dict[Place, set[int]],
    state_of: Callable[[int], tuple[Place, int, dict[int, OpenEntry] | None]],
    refusal: Callable[[str], TandemError | None],
    outcome: type[Outcome],
) -> list[Outcome]: ...
