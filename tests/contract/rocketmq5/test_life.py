"""A store that stops and starts under RocketMQ 5 clients, and members that are seen."""

import signal

import pytest

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.campaigns import in_campaigns
from tests.contract.rocketmq5.v2_client import V2Client, duration, message
from tests.contract.store_process import StoreProcess

GROUP = "living"


@pytest.mark.slow
def test_a_stop_ends_polls_with_no_message_and_asks_clients_to_connect_anew(own_store: StoreProcess) -> None:
    with V2Client(own_store.address) as client:
        client.route("stopped")
        client.receive(GROUP, "stopped", wait=0)
        stream = client.stream()
        stream.say(client.consumer(pb.PUSH_CONSUMER, GROUP, "stopped"))
        stream.next("settings")
        call = client.begin_receive(
            GROUP, "stopped", long_polling_timeout=duration(25), invisible_duration=duration(30)
        )
        call.initial_metadata()  # it has begun
        assert own_store.stop() == 0
        assert [part.status.code for part in call if part.HasField("status")] == [pb.MESSAGE_NOT_FOUND]
        assert stream.next("reconnect_endpoints_command").reconnect_endpoints_command.nonce


@pytest.mark.parametrize("number", [0, *in_campaigns(1)])
def test_messages_survive_a_kill(own_store: StoreProcess, number: int) -> None:
    topic = f"killed-{number}"
    with V2Client(own_store.address) as client:
        client.route(topic)
        client.receive(GROUP, topic, wait=0)
        sent = [client.send(message(topic)).entries[0].message_id for _ in range(20)]
        dealt_with = client.take(GROUP, topic, 1, batch_size=1)
        assert client.acknowledge(GROUP, *dealt_with).status.code == pb.OK
    own_store.stop(signal.SIGKILL)
    own_store.start()
    with V2Client(own_store.address) as client:
        rest = client.take(GROUP, topic, 19, batch_size=32)
        assert {one.system_properties.message_id for one in [*dealt_with, *rest]} == set(sent)
        assert client.acknowledge(GROUP, *rest).status.code == pb.OK
        assert client.receive(GROUP, topic, wait=0) == []


def test_a_stream_that_comes_again_takes_the_place_of_the_old_one(v2: V2Client) -> None:
    first, second = v2.stream(), v2.stream()
    for stream in (first, second):
        stream.say(v2.producer("twice"))
        assert stream.next("settings").status.code == pb.OK
    first.end()
    assert [one.WhichOneof("command") for one in first.call if not one.HasField("settings")] == []
    second.say(v2.producer("twice"))
    assert second.next("settings").status.code == pb.OK
