"""Messages of many senders, stored together and answered one by one (`Broker.submit`)."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.errors import SendFailed
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewMessage, Ready, Sender, SendOutcome
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.log.segments.commit_log import Appended

log = logging.getLogger(__name__)

_creating: set[asyncio.Task[None]] = set()
"""Tasks are kept by those who know them: the loop does not."""


class Receipt(NamedTuple):
    """What became of a message: where it lies, and what is true of it now."""

    ready: Ready
    place: Appended
    status: PutStatus


Told = Callable[[int, Receipt | TandemError], None]
"""Hears the number of a message, and its receipt or why it was refused. It must not raise."""

Numbered = list[tuple[int, Ready]]


class Submission:
    """One call of `submit`. A message that is refused fails no other."""

    def __init__(
        self,
        sender: Sender,
        acknowledgement: Acknowledgement,
        count: Callable[[Sequence[SendOutcome]], None],
        told: Told,
        *,
        wait: bool,
    ) -> None:
        """`count` hears what was stored; `wait`: for disk and replicas, unless a message says no itself."""
        self._sender = sender
        self._acknowledgement = acknowledgement
        self._count = count
        self._told = told
        self._wait = wait

    def begin(self, items: Sequence[NewMessage]) -> None:
        """Check all, store those whose topics are there, and have the other topics made."""
        present: Numbered = []
        later: Numbered = []
        missing: dict[str, TopicConfig] = {}
        for number, given in enumerate(items):
            new: dict[str, TopicConfig] = {}
            try:
                ready = self._sender.check(given, new, self._wait)
                self._sender.check_size(ready)
            except Exception as error:  # noqa: BLE001 - whatever it was, nobody else waits for this one
                self._told(number, _refusal(error))
                continue
            missing |= new
            (later if new else present).append((number, ready))
        self._store(present)
        if later:
            task = asyncio.create_task(self._create(missing, later), name="topics of new messages")
            _creating.add(task)
            task.add_done_callback(_creating.discard)

    async def _create(self, missing: dict[str, TopicConfig], later: Numbered) -> None:
        try:
            await self._sender.create(missing)
        except Exception as error:  # noqa: BLE001 - as above
            self._refuse([number for number, _ in later], error)
        else:
            self._store(later)

    def _refuse(self, numbers: Iterable[int], error: Exception) -> None:
        refusal = _refusal(error)
        for number in numbers:
            self._told(number, refusal)

    def _store(self, given: Numbered) -> None:
        if not given:
            return
        try:
            sent = self._sender.append([ready for _, ready in given])
        except Exception as error:  # noqa: BLE001 - as above
            self._refuse([number for number, _ in given], error)
            return
        try:
            self._count(sent)
        except Exception:  # what is stored is stored
            log.exception("Messages were stored and cannot be counted")
        waiting: list[tuple[int, SendOutcome]] = []
        others: list[tuple[int, SendOutcome]] = []
        for (number, _), one in zip(given, sent, strict=True):
            if one.failure is not None:
                self._told(number, one.failure)
            else:
                (waiting if self._wait and one.ready.wait else others).append((number, one))
        self._tell_when_safe(others, wait=False)
        self._tell_when_safe(waiting, wait=True)

    def _tell_when_safe(self, stored: list[tuple[int, SendOutcome]], *, wait: bool) -> None:
        """Tell those messages when the last of them is as safe as it is to be."""
        if not stored:
            return

        untold = True

        def safe(status: PutStatus) -> None:
            nonlocal untold
            if untold:
                untold = False
                for number, one in stored:
                    if one.place is not None:
                        self._told(number, Receipt(one.ready, one.place, status))

        end = max(one.place.end_offset for _, one in stored if one.place is not None)
        try:
            self._acknowledgement.when_safe(end, safe, wait=wait)
        except Exception as error:
            if not untold:
                raise
            untold = False  # nothing more is said of them, whatever comes later
            self._refuse([number for number, _ in stored], error)


def _refusal(error: Exception) -> TandemError:
    """What a sender is told; a fault of the program goes to the log."""
    if isinstance(error, TandemError):
        return error
    log.error("A send met what it should not", exc_info=error)
    return SendFailed(
        f"A fault of the broker: {type(error).__name__}: {error}.",
        remedy="Its log says where. The message may have been stored: look for it by its key before it is sent again.",
    )
