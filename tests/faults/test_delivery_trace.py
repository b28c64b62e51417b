"""Where a message stopped, told from a node's files."""

from pathlib import Path

from tandemmq.store.broker.postponing import TIMER_TOPIC
from tandemmq.store.delivery.delays.recalls import MessageRecalls, RecallHandle
from tandemmq.store.format import properties
from tests.faults.delivery_trace import Trace
from tests.faults.harness import body_of
from tests.unit.broker.broker_kit import HOST
from tests.unit.delivery.delays.delay_kit import BEGIN, delaying


async def test_each_way_in_which_a_message_goes(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        await kit.send(body_of("level"), DELAY="1")
        await kit.send(body_of("soon"), TIMER_DELIVER_MS=str(BEGIN + 500))
        waits = await kit.send(body_of("back"), TIMER_DELIVER_MS=str(BEGIN + 3_000))
        handle = RecallHandle("orders", "a", BEGIN + 3_000, waits.properties[properties.UNIQ_KEY])
        await MessageRecalls(kit.kit.broker, kit.wall).recall("orders", str(handle), HOST)
        await kit.send(body_of("far"), TIMER_DELIVER_MS=str(BEGIN + 60_000))
        await kit.pass_time(4)
    found = Trace(tmp_path, ["level", "soon", "back", "far", "none"]).found
    stages = {value: [line.split(" ")[0] for line in lines] for value, lines in found.items()}
    assert stages.pop("none") == []
    assert sorted(stages.pop("level")) == ["copied", "done,", "waits"]
    assert sorted(stages.pop("soon")) == ["copied", "done,", "waits"]
    assert stages.pop("back") == ["waits", "taken", "done,"]
    assert stages.pop("far") == ["waits", "in"]
    assert found["far"][1].startswith(f"in the index as TimerEntry(when={BEGIN + 60_000}, offset=3,")
    assert f"waits in {TIMER_TOPIC}-0 at 3," in found["far"][0]
    assert stages == {}
