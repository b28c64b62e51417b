"""Reading from slaves: what a slave says of offsets it does not have, and which broker a consumer should ask next.

RocketMQ: ``PullMessageProcessor``, ``DefaultMessageStore.checkInDiskByCommitOffset``.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from tandemmq.store.broker.pulled import PullAnswer, PullStatus
from tandemmq.store.format.record_fields import physical_offset_at
from tandemmq.store.log.message_store import MessageStore

MASTER = 0
SLAVE = 1
"""Broker ids that are advised: the defaults of RocketMQ's subscription groups."""


@dataclass(frozen=True, slots=True)
class SlaveReadRules:
    """``slaveReadEnable``, ``offsetCheckInSlave``, and the lag in bytes beyond which a slave is advised."""

    slave_read: bool = False
    check_offsets: bool = False
    lag_max: int = 1 << 62


def lag_max(ratio: int, memory: Callable[[], int] | None = None) -> int:
    """``accessMessageInMemoryMaxRatio`` percent of the machine's memory, in bytes."""
    total = memory() if memory is not None else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return total * ratio // 100


class SlaveReads:
    """Looks at answers to pulls before they go out."""

    def __init__(self, store: MessageStore, rules: SlaveReadRules) -> None:
        """Follow the role of the store, which may change."""
        self._store = store
        self._rules = rules

    def place(self, pulled: PullAnswer, offset: int) -> PullAnswer:
        """The answer to a pull at ``offset``, on a slave: it may be behind, so it corrects no offset of its own accord.

        What lies beyond its queue is not there yet.
        """
        if pulled.status is PullStatus.FOUND or not self._store.replica.mastership.is_slave:
            return pulled
        if self._rules.check_offsets or pulled.next_offset == offset:
            return pulled
        if pulled.status is PullStatus.OFFSET_OVERFLOW_BADLY:
            return replace(pulled, status=PullStatus.OFFSET_OVERFLOW_ONE, next_offset=offset)
        if pulled.status in (
            PullStatus.OFFSET_TOO_SMALL,
            PullStatus.NO_MATCHED_LOGIC_QUEUE,
            PullStatus.NO_MESSAGE_IN_QUEUE,
        ):
            return replace(pulled, next_offset=offset)
        return pulled

    @property
    def advises(self) -> bool:
        """Whether a slave is ever advised."""
        return self._rules.slave_read

    def advice(self, pulled: PullAnswer) -> int:
        """Id of the broker to pull from next: a slave, where reading what comes next would cost the disk; else 0."""
        if not self._rules.slave_read or not pulled.records:
            return MASTER
        read = physical_offset_at(pulled.records)
        return SLAVE if self._store.commit_log.max_offset - read > self._rules.lag_max else MASTER
