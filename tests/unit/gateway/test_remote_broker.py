"""Who asks a broker whose link is lost: that waits for the next link, and keeps nobody else waiting."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.timers import LoopTimers
from tandemmq.gateway import remote_broker
from tandemmq.gateway.broker_link import BrokerLink
from tandemmq.gateway.errors import BrokerAway, WrongBroker
from tandemmq.gateway.questions import Question
from tandemmq.gateway.remote_broker import RemoteBroker


class Channel:
    async def close(self) -> None:
        """There is nothing to close."""


def test_a_lost_link_does_not_stop_the_loop_and_is_asked_about_on_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    async def dialled() -> None:
        broker = RemoteBroker("broker-a", ("one",), cast(Any, None), "gateway", 1)

        async def found(_addresses: Sequence[str]) -> BrokerLink:
            if asked:
                await asyncio.sleep(0.05)
            link = BrokerLink(cast(Any, Channel()), "one", "gateway", lambda _: None, LoopTimers())
            link.put = asked.append  # type: ignore[method-assign, assignment]
            return link

        monkeypatch.setattr(broker, "_found", found)
        broker.start()
        await broker.changed(1)
        first = broker.link
        assert first is not None
        asking = asyncio.create_task(broker.ask(Question(credit=broker_pb2.Credit(bytes=7)), 2.0))
        await asyncio.sleep(0)
        asked.append(b"")
        began = asyncio.get_running_loop().time()
        first._over("it was lost")
        await asyncio.sleep(0.01)
        assert asyncio.get_running_loop().time() - began < 1, "whoever asks again kept the loop from finding a link"
        assert not broker.was_there(0)
        await broker.changed(1)
        assert broker.link is not None
        await asyncio.sleep(0)
        (question,) = broker_pb2.LinkRequest.FromString(asked[-1]).questions
        broker.link._hear(broker_pb2.LinkResponse(answers=[broker_pb2.Answer(id=question.id)]).SerializeToString())
        assert (await asking).id == question.id
        await broker.stop()

    asyncio.run(dialled())


async def test_a_link_that_is_lost_during_the_look_for_a_newer_master_is_made_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An address at which nobody answers is asked for seconds: the loss of the link is not to wait for that."""
    monkeypatch.setattr(remote_broker, "RIVALS_SECONDS", 0.0)
    broker = RemoteBroker("broker-a", ("one", "two"), cast(Any, None), "gateway", 1)
    asked: list[str] = []

    async def attempt(address: str) -> BrokerLink:
        asked.append(address)
        if address == "two":
            await asyncio.Event().wait()
        link = BrokerLink(cast(Any, Channel()), address, "gateway", lambda _: None, LoopTimers())
        link.put = list[bytes]().append  # type: ignore[method-assign, assignment]
        return link

    monkeypatch.setattr(broker, "_try", attempt)
    broker.start()
    async with asyncio.timeout(30):
        while broker.link is None or asked.count("two") < 2:
            await broker.changed(0.01)
        first = broker.link
        first._over("it was lost")
        while broker.link is first or broker.link is None:
            await broker.changed(0.01)
    assert asked.count("one") == 2
    await broker.stop()


@pytest.mark.parametrize("error", [WrongBroker("two is broker b, not broker-a."), OSError("no certificate")])
async def test_an_address_that_cannot_be_asked_for_a_newer_master_is_told_once(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """That the other one is no master is the usual, and nothing to tell. This hides a newer master."""
    monkeypatch.setattr(remote_broker, "RIVALS_SECONDS", 0.0)
    broker = RemoteBroker("broker-a", ("one", "two", "three"), cast(Any, None), "gateway", 1)
    asked: list[str] = []

    async def attempt(address: str) -> BrokerLink:
        asked.append(address)
        if address == "two":
            raise error
        if address == "three":
            raise BrokerAway("three is no master.")
        link = BrokerLink(cast(Any, Channel()), address, "gateway", lambda _: None, LoopTimers())
        link.put = list[bytes]().append  # type: ignore[method-assign, assignment]
        return link

    monkeypatch.setattr(broker, "_try", attempt)
    broker.start()
    async with asyncio.timeout(30):
        while asked.count("two") < 4:
            await broker.changed(0.01)
    await broker.stop()
    told = [one for one in caplog.records if one.message.startswith("an address of a broker cannot be asked")]
    assert len(told) == 1
    assert "three" not in caplog.text
