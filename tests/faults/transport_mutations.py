"""Damage: an honest client's frames, changed at random in ways that a parser may not expect."""

import random
from collections.abc import Callable, Sequence

from tests.faults.transport_seeds import INTERESTING_FRAMES, SEEDS, TOKENS, Seed
from tests.unit.grpc_transport.wire import HEADER_SIZE

LENGTHS = (0, 1, 3, 4, 5, 7, 8, 9, 16_383, 16_384, 16_385, 65_535, 65_536, (1 << 20), (1 << 20) + 1, (1 << 24) - 1)
STREAMS = (0, 1, 2, 3, 5, 7, 9, 11, 101, 0x7FFF_FFFF, 0x7FFF_FFFE, 0x8000_0001, 0xFFFF_FFFF)
INTEGERS = (0, 1, 2, 0x7F, 0xFF, 0x3FFF, 0x4000, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)
LONGEST = 64_000
"""Inputs are not made longer than about this, bytes."""


class Mutator:
    """Makes inputs by number: the same seed and number give the same input, whatever was made before.

    Recorded seeds come from real clients and may differ from run to run; so only inputs made of the others can be made
    again by number. Those are the even ones.
    """

    def __init__(self, seed: int, recorded: Sequence[Seed] = ()) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self._recorded = list(recorded) or SEEDS
        self._changes: tuple[Callable[[Seed], None], ...] = (
            *[self._flip] * 3,
            *[self._byte] * 2,
            *[self._header] * 4,
            *[self._payload] * 2,
            *[self._token] * 2,
            *[self._integer] * 2,
            *[self._duplicate] * 2,
            self._repeat,
            *[self._delete] * 2,
            *[self._swap] * 2,
            *[self._splice] * 2,
            *[self._frame] * 3,
            self._shorten,
            self._resize,
            self._truncate,
        )

    def make(self, number: int) -> list[bytes]:
        """An input: the parts in which it is to be received."""
        rng = self.rng
        rng.seed(self.seed << 64 | number)
        random_float = rng.random
        seeds = self._recorded if number & 1 else SEEDS
        frames = list(seeds[int(random_float() * len(seeds))])
        for _ in range(1 + int(random_float() ** 2 * 6)):
            self._changes[int(random_float() * len(self._changes))](frames)
            if not frames:
                break
        return self._parts(b"".join(frames)[:LONGEST])

    def _parts(self, sent: bytes) -> list[bytes]:
        rng = self.rng
        how = rng.random()
        if how < 0.6 or len(sent) < 2:
            return [sent]
        if how < 0.603 and len(sent) < 1000:
            return [sent[at : at + 1] for at in range(len(sent))]
        places = sorted(rng.randrange(1, len(sent)) for _ in range(rng.randrange(1, 6)))
        starts = [0, *places]
        return [sent[start:stop] for start, stop in zip(starts, [*places, len(sent)], strict=True)]

    def _at(self, frames: Seed) -> int:
        """A frame; most often one behind those that open the connection."""
        chance = self.rng.random()
        first = 3 if len(frames) > 3 and chance < 0.95 else 0
        return first + int(self.rng.random() * (len(frames) - first))

    # -- bytes --------------------------------------------------------------------------------------------------------

    def _flip(self, frames: Seed) -> None:
        at = self._at(frames)
        if frames[at]:
            changed = bytearray(frames[at])
            changed[int(self.rng.random() * len(changed))] ^= 1 << int(self.rng.random() * 8)
            frames[at] = bytes(changed)

    def _byte(self, frames: Seed) -> None:
        at = self._at(frames)
        if frames[at]:
            changed = bytearray(frames[at])
            changed[int(self.rng.random() * len(changed))] = int(self.rng.random() * 256)
            frames[at] = bytes(changed)

    def _token(self, frames: Seed) -> None:
        """Something meaningful in the middle of a payload, the frame's length made to fit."""
        at = self._at(frames)
        frame, token = frames[at], self.rng.choice(TOKENS)
        place = HEADER_SIZE + int(self.rng.random() * max(1, len(frame) - HEADER_SIZE))
        over = len(token) if self.rng.random() < 0.5 else 0
        frames[at] = fitted(frame[:place] + token + frame[place + over :])

    def _integer(self, frames: Seed) -> None:
        at = self._at(frames)
        frame = frames[at]
        place = HEADER_SIZE + int(self.rng.random() * max(1, len(frame) - HEADER_SIZE - 3))
        frames[at] = frame[:place] + self.rng.choice(INTEGERS).to_bytes(4) + frame[place + 4 :]

    # -- fields of a frame --------------------------------------------------------------------------------------------

    def _header(self, frames: Seed) -> None:
        at, rng = self._at(frames), self.rng
        frame, which = frames[at], rng.random()
        if which < 0.2:
            frames[at] = frame[:3] + bytes((rng.randrange(12),)) + frame[4:]
        elif which < 0.5 and len(frame) > 4:
            frames[at] = frame[:4] + bytes((frame[4] ^ 1 << rng.randrange(8),)) + frame[5:]
        elif which < 0.8:
            frames[at] = frame[:5] + rng.choice(STREAMS).to_bytes(4) + frame[9:]
        else:
            length = (
                int.from_bytes(frame[:3]) + rng.choice((-1, 1, -5, 5)) if rng.random() < 0.5 else rng.choice(LENGTHS)
            )
            frames[at] = (length & 0xFF_FFFF).to_bytes(3) + frame[3:]

    def _payload(self, frames: Seed) -> None:
        at = self._at(frames)
        payload = self.rng.randbytes(int(self.rng.random() ** 3 * 300))
        frames[at] = fitted(frames[at][:HEADER_SIZE] + payload)

    def _shorten(self, frames: Seed) -> None:
        """Bytes lost: the next frame's are taken for them."""
        at = self._at(frames)
        frames[at] = frames[at][: int(self.rng.random() * (len(frames[at]) + 1))]

    def _resize(self, frames: Seed) -> None:
        at = self._at(frames)
        size = int(self.rng.random() ** 4 * 20_000)
        payload = frames[at][HEADER_SIZE:]
        frames[at] = fitted(frames[at][:HEADER_SIZE] + (payload * (size // max(1, len(payload)) + 1))[:size])

    # -- order of frames ----------------------------------------------------------------------------------------------

    def _duplicate(self, frames: Seed) -> None:
        frames.insert(self._at(frames), frames[self._at(frames)])

    def _repeat(self, frames: Seed) -> None:
        at = self._at(frames)
        frames[at:at] = [frames[at]] * min(int(self.rng.random() ** 3 * 150), LONGEST // (len(frames[at]) + 1))

    def _delete(self, frames: Seed) -> None:
        del frames[self._at(frames)]

    def _swap(self, frames: Seed) -> None:
        one, other = self._at(frames), self._at(frames)
        frames[one], frames[other] = frames[other], frames[one]

    def _splice(self, frames: Seed) -> None:
        other = self.rng.choice(SEEDS)
        start = self._at(other)
        at = self._at(frames)
        frames[at:at] = other[start : start + self.rng.randrange(1, 6)]

    def _frame(self, frames: Seed) -> None:
        frames.insert(self._at(frames) + (self.rng.random() < 0.5), self.rng.choice(INTERESTING_FRAMES))

    def _truncate(self, frames: Seed) -> None:
        del frames[self._at(frames) + 1 :]


def fitted(frame: bytes) -> bytes:
    """The frame with its length field put right."""
    return (len(frame) - HEADER_SIZE & 0xFF_FFFF).to_bytes(3) + frame[3:]
