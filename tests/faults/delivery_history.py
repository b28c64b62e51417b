"""The judge of the delivery campaigns: takes what producers and consumers saw, and says what should not have been.

The nine points:

 1. lost: a message that was acknowledged to its producer, and that a group wants, is never dealt with; unless its
    producer asked for it back
 2. invented: a group got what nobody sent, what was rolled back or recalled, or what it does not want
 3. early: a message came before its time, or again while it was invisible, or sooner than a retry asked for
 4. again: a message came again after its acknowledgement was answered
 5. too often: more deliveries than the group allows
 6. number: two deliveries of one message with the same number, or in one answer
 7. order: a message came before one of its message group that lies before it
 8. dead letters: one that is missing, one too many, or one that need not be
 9. offsets: a position lies past something that nobody has dealt with

A fault that may lose what was not acknowledged (a power cut, a promotion) excuses what it explains: 3, 5 and 6 of
messages that were given out before it. A copy (delayed message, transaction, dead letter) may be there twice after any
end by force. All times are milliseconds since 1970.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

Queue = tuple[str, int]

SLACK_MS = 5
"""Clocks are read in whole milliseconds, and invisible times go by another clock than ours."""


class Problem(NamedTuple):
    """A broken promise: the point of the list above, and what was seen."""

    point: int
    what: str


class Group(NamedTuple):
    """A group, and what it may expect."""

    name: str
    deliveries: int
    ordered: bool = False
    tag: str = ""
    """The only tag that it wants; empty: all messages."""


class Sent(NamedTuple):
    """A message as its producer knows it."""

    value: str
    begun: float
    told: float
    """When it was acknowledged; 0: never, it may be there or not."""
    tag: str = ""
    key: str = ""
    """Its message group."""
    due: float = 0
    """It must not be delivered before that."""
    queue: Queue | None = None
    offset: int = -1
    """Its place in the queue; of messages that are delivered as they are."""
    never: bool = False
    """It was rolled back or taken back, and that was answered."""
    recalling: bool = False
    """Its producer asked for it back. Where that was not answered, the recall may be stored, and act, or not."""

    @property
    def copied(self) -> bool:
        """Whether what is delivered is a copy."""
        return self.queue is None


class Receipt(NamedTuple):
    """A message as a consumer got it. `answer` and `nth`: of which receive, and where in it."""

    group: str
    value: str
    number: int
    begun: float
    at: float
    queue: Queue
    offset: int
    invisible_ms: float
    answer: str
    nth: int

    @property
    def message(self) -> "Message":
        """Which message it is: a value may have two copies."""
        return Message(self.group, self.value, self.queue, self.offset)


class Message(NamedTuple):
    """One message as one group sees it."""

    group: str
    value: str
    queue: Queue
    offset: int


class Settling(NamedTuple):
    """What a consumer said of a message that it held: `ack`, `dead`, or `retry` after so long."""

    message: Message
    how: str
    begun: float
    told: float
    """When it was answered with success; 0: never."""
    refused: bool = False
    after_ms: float = 0

    @property
    def ends(self) -> bool:
        """Whether the message may be dealt with by it."""
        return self.how != "retry" and not self.refused


class Position(NamedTuple):
    """All below `offset` is dealt with, it was said at a time."""

    group: str
    queue: Queue
    offset: int
    at: float


class Fault(NamedTuple):
    """Something was ended by force, and was back later. `lossy`: what was not acknowledged may be undone."""

    what: str
    begun: float
    end: float
    lossy: bool = False


@dataclass
class History:
    """Everything that was seen; `problems` says what of it should not have been."""

    groups: list[Group]
    sent: dict[str, Sent] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
    settlings: list[Settling] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    letters: dict[str, list[str]] = field(default_factory=dict)
    """By group: the values of its dead letters, as found at the end."""

    def lost(self) -> list[tuple[str, str]]:
        """Group and value of what is still to be dealt with, unless that was said and no answer came."""
        done = {(one.message.group, one.message.value) for one in self.settlings if one.ends}
        buried = {(group, value) for group, values in self.letters.items() for value in values}
        return [
            (group.name, one.value)
            for group in self.groups
            for one in self.sent.values()
            if one.told and not (one.never or one.recalling) and self._wants(group, one)
            if (group.name, one.value) not in done | buried
        ]

    def problems(self) -> list[Problem]:
        """What should not have been; empty where every promise was kept."""
        return list(_Judge(self).all())

    @staticmethod
    def _wants(group: Group, one: Sent) -> bool:
        return not group.tag or group.tag == one.tag


class _Judge:
    def __init__(self, history: History) -> None:
        self.history = history
        self.groups = {group.name: group for group in history.groups}
        self.receipts: dict[Message, list[Receipt]] = defaultdict(list)
        for receipt in sorted(history.receipts, key=lambda one: (one.at, one.number)):
            self.receipts[receipt.message].append(receipt)
        self.settlings: dict[Message, list[Settling]] = defaultdict(list)
        for settling in sorted(history.settlings, key=lambda one: one.begun):
            self.settlings[settling.message].append(settling)
        self.buried: dict[str, Counter[str]] = {group: Counter(values) for group, values in history.letters.items()}

    def all(self) -> Iterator[Problem]:
        yield from self.losses()
        yield from self.inventions()
        for message, receipts in self.receipts.items():
            yield from self.early(message, receipts)
            yield from self.again(message, receipts)
            yield from self.often(message, receipts)
        yield from self.order()
        yield from self.dead_letters()
        yield from self.offsets()

    def lossy_after(self, time: float) -> int:
        """Faults that may have undone what was given out at that time."""
        return sum(fault.lossy and fault.end > time for fault in self.history.faults)

    def copies(self, group: str, value: str) -> int:
        """How many dead letters of a group have that value."""
        return self.buried.get(group, Counter())[value]

    def forced(self) -> int:
        """How often anything was ended by force."""
        return len(self.history.faults)

    # -- the points -----------------------------------------------------------------------------------------------

    def losses(self) -> Iterator[Problem]:
        for group, value in self.history.lost():
            yield Problem(1, f"{group} never dealt with {self.history.sent[value]}")

    def inventions(self) -> Iterator[Problem]:
        copies: Counter[tuple[str, str]] = Counter()
        for message in self.receipts:
            one = self.history.sent.get(message.value)
            group = self.groups[message.group]
            copies[message.group, message.value] += 1
            if one is None:
                yield Problem(2, f"{message} was never sent")
            elif one.never:
                yield Problem(2, f"{message} was rolled back or recalled: {one}")
            elif group.tag not in ("", one.tag):
                yield Problem(2, f"{message} is not wanted: {one.tag}")
            elif one.told and one.queue is not None and (one.queue, one.offset) != (message.queue, message.offset):
                yield Problem(2, f"{message} was sent elsewhere: {one}")
        for (group_name, value), count in copies.items():
            if count > 1 + self.forced():
                yield Problem(2, f"{group_name} got {count} copies of {value}")

    def early(self, message: Message, receipts: list[Receipt]) -> Iterator[Problem]:
        one = self.history.sent.get(message.value)
        if one is not None and receipts[0].at < one.due:
            yield Problem(3, f"{one.due - receipts[0].at:.0f} ms early: {receipts[0]}")
        for before, receipt in pairwise(receipts):
            due = before.begun + before.invisible_ms
            for settling in self.settlings[message]:
                if settling.how == "retry" and not settling.refused and before.at <= settling.begun <= receipt.at:
                    due = settling.begun + settling.after_ms if settling.told else 0
            if receipt.at < due - SLACK_MS and receipt.number > before.number and not self.lossy_after(before.begun):
                yield Problem(3, f"again {due - receipt.at:.0f} ms early: {receipt} after {before}")

    def again(self, message: Message, receipts: list[Receipt]) -> Iterator[Problem]:
        told = [one.told for one in self.settlings[message] if one.how != "retry" and one.told]
        late = [one for one in receipts if told and one.begun > min(told)]
        if late:
            yield Problem(4, f"dealt with at {min(told):.0f}, and given again: {late[0]}")

    def often(self, message: Message, receipts: list[Receipt]) -> Iterator[Problem]:
        most = self.groups[message.group].deliveries
        excused = self.lossy_after(receipts[0].begun)
        if max(one.number for one in receipts) > most or len(receipts) > most + excused:
            yield Problem(5, f"{len(receipts)} deliveries, {most} allowed: {receipts}")
        if any(count > 1 + excused for count in Counter(one.number for one in receipts).values()):
            yield Problem(6, f"the same number twice: {receipts}")
        if any(count > 1 for count in Counter(one.answer for one in receipts).values()):
            yield Problem(6, f"twice in one answer: {receipts}")

    def order(self) -> Iterator[Problem]:
        lines: dict[tuple[str, Queue], list[Sent]] = defaultdict(list)
        for one in self.history.sent.values():
            if one.key and one.told and one.queue is not None:
                lines[one.key, one.queue].append(one)
        for group in self.history.groups:
            if group.ordered:
                for line in lines.values():
                    line.sort(key=lambda one: one.offset)
                    yield from self.in_line(group, [one for one in line if not group.tag or group.tag == one.tag])

    def in_line(self, group: Group, line: list[Sent]) -> Iterator[Problem]:
        """Of one message group: when a message comes, each before it is dealt with, or comes with it."""
        earlier: list[tuple[Sent, float, dict[str, int]]] = []  # done from when on; answers that it was in
        for one in line:
            assert one.queue is not None
            message = Message(group.name, one.value, one.queue, one.offset)
            receipts = self.receipts.get(message, [])
            for receipt in receipts:
                for other, done, answers in earlier:
                    beside = answers.get(receipt.answer, receipt.nth) < receipt.nth
                    if done > receipt.at and not beside:
                        yield Problem(7, f"{receipt} came before {other}")
            dones = [each.begun for each in self.settlings[message] if each.ends]
            dead = self.copies(group.name, one.value)
            done = 0 if dead else min(dones, default=float("inf"))
            earlier.append((one, done, {receipt.answer: receipt.nth for receipt in reversed(receipts)}))

    def dead_letters(self) -> Iterator[Problem]:
        asked: dict[tuple[str, str], list[Settling]] = defaultdict(list)
        for one in self.history.settlings:
            if one.how == "dead":
                asked[one.message.group, one.message.value].append(one)
        acknowledged = {(one.message.group, one.message.value) for one in self.history.settlings if one.how == "ack"}
        for (group, value), settlings in asked.items():
            told = any(one.told for one in settlings)  # of what somebody has acknowledged it says that it is done
            if told and (group, value) not in acknowledged and not self.copies(group, value):
                yield Problem(8, f"{value} was forwarded, and is no dead letter of {group}")
        numbers: dict[tuple[str, str], int] = Counter()
        for receipt in self.history.receipts:
            numbers[receipt.group, receipt.value] = max(numbers[receipt.group, receipt.value], receipt.number)
        for group, letters in self.buried.items():
            most = self.groups[group].deliveries
            for value, count in letters.items():
                excused = self.forced()
                if value not in self.history.sent:
                    yield Problem(8, f"a dead letter of {group} that nobody sent: {value}")
                elif count > 1 + excused:
                    yield Problem(8, f"{count} dead letters of {value} in {group}")
                elif not excused and not asked.get((group, value)) and numbers[group, value] < most:
                    yield Problem(8, f"{value} is a dead letter of {group} after {numbers[group, value]} deliveries")

    def offsets(self) -> Iterator[Problem]:
        places: dict[Queue, set[tuple[int, str]]] = defaultdict(set)
        for one in self.history.sent.values():
            if one.told and one.queue is not None:
                places[one.queue].add((one.offset, one.value))
        for message in self.receipts:
            sent = self.history.sent.get(message.value)
            if sent is not None and sent.told and sent.copied:
                places[message.queue].add((message.offset, message.value))
        furthest: dict[tuple[str, Queue, int], float] = {}
        for position in self.history.positions:
            key = position.group, position.queue, position.offset
            furthest[key] = min(furthest.get(key, position.at), position.at)
        for (name, queue, offset), at in furthest.items():
            for place, value in places[queue]:
                if place < offset and not self.dealt_with(Message(name, value, queue, place), at):
                    yield Problem(9, f"{name} is at {offset} of {queue} at {at:.0f}, past {value} at {place}")

    def dealt_with(self, message: Message, at: float) -> bool:
        sent = self.history.sent[message.value]
        if self.groups[message.group].tag not in ("", sent.tag):
            return True
        if self.copies(message.group, message.value):
            return True
        return any(one.ends and one.begun <= at for one in self.settlings.get(message, ()))


def first_problems(problems: Iterable[Problem], most: int = 5) -> list[list[object]]:
    """Some of each point, for a report."""
    seen: Counter[int] = Counter()
    found: list[list[object]] = []
    for problem in problems:
        seen[problem.point] += 1
        if seen[problem.point] <= most:
            found.append(list(problem))
    return found
