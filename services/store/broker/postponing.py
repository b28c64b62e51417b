"""Messages that are to be delivered later: how they are stored until then.

A message with DELAY above 0 waits in ``SCHEDULE_TOPIC_XXXX``, in the queue of its level; one with a TIMER_* property in
``rmq_sys_wheel_timer``. REAL_TOPIC and REAL_QID say where it belongs. No I/O and no clock.

Sources: RocketMQ's HookUtils.handleScheduleMessage, transformTimerMessage, transformDelayLevelMessage.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tandemmq.store.broker.errors import BadDelay, IllegalMessage, NotSupported
from tandemmq.store.format import properties
from tandemmq.store.format.unit import DELAY_LEVELS_MS, SCHEDULE_TOPIC

TIMER_TOPIC = "rmq_sys_wheel_timer"
"""The topic in which timed messages wait, all in queue 0 (RocketMQ: ``TimerMessageStore.TIMER_TOPIC``)."""

TIMERS = (properties.TIMER_DELAY_SEC, properties.TIMER_DELAY_MS, properties.TIMER_DELIVER_MS)
"""The properties that ask for a time; of several the first counts."""

_UNITS_MS = {properties.TIMER_DELAY_SEC: 1_000, properties.TIMER_DELAY_MS: 1, properties.TIMER_DELIVER_MS: 1}
_SCHEDULE_QUEUES = 18
"""RocketMQ makes the topic with so many queues, however many levels there are."""
_LONGEST_NUMBER = 19
"""Digits of a Java long."""


@dataclass(frozen=True, slots=True)
class DelayRules:
    """What is to be known of the settings."""

    levels_ms: tuple[int, ...] = DELAY_LEVELS_MS
    """Delays of the levels 1, 2, ..."""
    most_ms: int = 40 * 86_400_000
    """A message cannot be postponed further (`timerMaxDelaySec`)."""
    precision_ms: int = 1_000
    """RocketMQ's wheel turns so far at a time (`timerPrecisionMs`)."""
    timers: bool = True
    """Whether any time may be asked for, or levels only (`timerWheelEnable`)."""


class Postponed(NamedTuple):
    """How a message waits: in a queue of a topic of which the broker makes so many `queues`.

    `real_queue`: the queue of its own topic to which it goes then. `due`: when it is to be delivered, in ms since the
    epoch. Of a level that is the time as it is now; what counts is the time at which it is stored.
    """

    topic: str
    queue_id: int
    queues: int
    real_queue: int
    due: int


def postpone(topic: str, queue_id: int, given: dict[str, str], now_ms: int, rules: DelayRules) -> Postponed | None:
    """How a message for a queue waits, or None where it is to be delivered at once; `given` is changed to say so.

    Raises:
        BadDelay: the time is none, or too far away. IllegalMessage: DELAY is no number. NotSupported: there are no
        timers.
    """
    level = delay_level(given)
    if level > 0:
        for name in (*TIMERS, properties.TIMER_OUT_MS):
            given.pop(name, None)
        return _wait_by_level(topic, queue_id, given, now_ms, min(level, len(rules.levels_ms)), rules)
    given.pop(properties.TIMER_OUT_MS, None)  # the broker's own: a client's would count as a time already kept
    asked = next((name for name in TIMERS if given.get(name)), None)
    if asked is None:
        return None
    if not rules.timers:
        raise NotSupported(
            f"Timed messages are switched off here (property {asked}).",
            remedy="Use a delay level, or set timerWheelEnable=true.",
        )
    due = _due(asked, given[asked], now_ms)
    if due <= now_ms:
        return None
    if due - now_ms > rules.most_ms:
        raise BadDelay(
            f"{asked}={given[asked]} is {(due - now_ms) // 1_000:,} s ahead: at most {rules.most_ms // 1_000:,} s are "
            "allowed.",
            remedy="Choose an earlier time, or raise timerMaxDelaySec.",
        )
    for name in TIMERS:
        given.pop(name, None)
    given[properties.TIMER_DELIVER_MS] = str(due)
    given[properties.TIMER_OUT_MS] = str((due - 1) // rules.precision_ms * rules.precision_ms)
    _keep_origin(topic, queue_id, given)
    return Postponed(TIMER_TOPIC, 0, 1, queue_id, due)


def orders_for(wait_ms: int, now_ms: int, rules: DelayRules) -> dict[str, str] | None:
    """The properties that make a message wait so long: a time, or without timers the least level that is no shorter.

    None where no level is long enough.
    """
    if wait_ms <= 0:
        return {}
    if rules.timers:
        return {properties.TIMER_DELIVER_MS: str(now_ms + wait_ms)}
    long = [level for level, ms in enumerate(rules.levels_ms, 1) if ms >= wait_ms]
    return {properties.DELAY: str(min(long, key=lambda level: rules.levels_ms[level - 1]))} if long else None


def delay_level(given: dict[str, str]) -> int:
    """The level that a message asks for; 0 and less for none. Raises IllegalMessage."""
    text = given.get(properties.DELAY)
    if not text:
        return 0
    number = _number(text)
    if number is None:
        raise IllegalMessage(f"The property DELAY is no number: {text[:40]!r}.")
    return number


def _wait_by_level(
    topic: str, queue_id: int, given: dict[str, str], now_ms: int, level: int, rules: DelayRules
) -> Postponed:
    given[properties.DELAY] = str(level)
    _keep_origin(topic, queue_id, given)
    queues = max(_SCHEDULE_QUEUES, len(rules.levels_ms))
    return Postponed(SCHEDULE_TOPIC, level - 1, queues, queue_id, now_ms + rules.levels_ms[level - 1])


def _keep_origin(topic: str, queue_id: int, given: dict[str, str]) -> None:
    given[properties.REAL_TOPIC] = topic
    given[properties.REAL_QID] = str(queue_id)


def _due(name: str, text: str, now_ms: int) -> int:
    """When the message is to be delivered, by that property."""
    number = _number(text)
    if number is None:
        raise BadDelay(f"The property {name} is no number: {text[:40]!r}.")
    if number < 0:
        raise BadDelay(f"The property {name} is negative: {text[:40]}.")
    if name == properties.TIMER_DELIVER_MS:
        return number
    return now_ms + number * _UNITS_MS[name]


def _number(text: str) -> int | None:
    """A whole number as Java reads it."""
    digits = text.strip().removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER):
        return None
    return -int(digits) if text.strip().startswith("-") else int(digits)
