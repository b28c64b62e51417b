"""Several services in one process, on one event loop: each starts when the one before serves, and stops before it."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple

from tandemmq.common.serving.shutdown import StopRequest, StopSignal

_SPEAKER: ContextVar[str] = ContextVar("tandem_speaker")
"""The service whose task this is."""


class TogetherPart(NamedTuple):
    """One of the services."""

    name: str
    serve: Callable[[Callable[..., None], StopRequest], Coroutine[Any, Any, None]]
    """Its life: it calls the first when it answers, with facts of its own, and ends when the second is asked for."""
    answers: Callable[..., None]
    """Told once, with those facts."""


async def run_together(parts: Sequence[TogetherPart]) -> None:
    """Run the services until SIGTERM or SIGINT, or until one of them ends; then stop the others, the last one first.

    A signal ends a service that does not answer yet as it would end one that is alone: at once.
    Raises what ended the first that failed.
    """
    stop = StopSignal()
    stop.listen()
    asked = asyncio.ensure_future(stop.wait())
    lives: list[_Life] = []
    for part in parts:
        lives.append(_Life(part))
        if not await _serves(lives[-1], [asked, *(one.task for one in lives)]):
            break
    else:
        await _first([asked, *(one.task for one in lives)])
    asked.cancel()
    ended = next((one for one in lives if one.task.done()), None)
    for life in reversed(lives):
        if life.answered.is_set() or life.task.done():
            life.stop.request(stop.reason or f"the {ended.name if ended else 'process'} has ended")
            await asyncio.wait([life.task])
    if stop.reason and not lives[-1].task.done():
        signal.raise_signal(signal.Signals[stop.reason])
    for life in [*([ended] if ended is not None else []), *lives]:
        if life.task.done():
            life.task.result()


class _Life:
    """A service that was started."""

    def __init__(self, part: TogetherPart) -> None:
        self.name = part.name
        self.answered = asyncio.Event()
        self.stop = StopRequest()

        def answers(*facts: Any) -> None:
            self.answered.set()
            part.answers(*facts)

        context = copy_context()
        context.run(_SPEAKER.set, part.name)
        self.task = asyncio.get_running_loop().create_task(part.serve(answers, self.stop), context=context)


async def _serves(life: _Life, ends: "Sequence[asyncio.Future[Any]]") -> bool:
    """Whether a service answers before anything has ended."""
    answered = asyncio.ensure_future(life.answered.wait())
    await _first([answered, *ends])
    answered.cancel()
    return life.answered.is_set() and not any(one.done() for one in ends)


async def _first(futures: "Sequence[asyncio.Future[Any]]") -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


class SpeakerFormatter(logging.Formatter):
    """Puts the service, and a tab, before each line of another formatter."""

    def __init__(self, names: Sequence[str], inner: logging.Formatter) -> None:
        super().__init__()
        self._names = names
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """The lines; the logger says whose they are, else the task in which they were written."""
        own = record.name.removeprefix("tandemmq.").partition(".")[0]
        name = own if own in self._names else _SPEAKER.get(self._names[0])
        return "\n".join(f"{name}\t{line}" for line in self._inner.format(record).split("\n"))


def name_speakers(names: Sequence[str]) -> None:
    """Have each line of the log, as it is configured now, begin with the service that says it."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(SpeakerFormatter(names, handler.formatter or logging.Formatter()))
