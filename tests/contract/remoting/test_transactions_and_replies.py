"""Transactions of classic producers, checks included; requests and their replies."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.store.format.record import decode_record
from tests.contract.remoting.classic_client import Answer, ClassicClient, records, send_header
from tests.contract.remoting.conftest import Connect, classic
from tests.contract.store_process import StoreProcess

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


@pytest.fixture(scope="module")
def classic_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store that asks soon about transactions."""
    directory: Path = tmp_path_factory.mktemp("transactions")
    quick = {"transaction_time_out": 500, "transaction_check_interval": 500}
    with classic(directory / "store", **quick) as store:
        yield store


def half(client: ClassicClient, topic: str, key: str) -> Answer:
    """Begins a transaction."""
    given = {"TRAN_MSG": "true", "PGROUP": "deciders", "UNIQ_KEY": key}
    sent = client.ask(RequestCode.SEND_MESSAGE_V2, send_header(topic, 1, "deciders", given) | {"f": 4}, key.encode())
    assert (sent.fields["transactionId"], sent.fields["queueId"]) == (key, "1")
    return sent


def end(client: ClassicClient, sent: Answer, how: int, group: str = "deciders") -> None:
    """END_TRANSACTION, by what the send's answer says."""
    fields = {"producerGroup": group, "tranStateTableOffset": sent.fields["queueOffset"], "commitOrRollback": how}
    fields |= {"commitLogOffset": int(sent.fields["msgId"][16:], 16), "msgId": sent.fields["transactionId"]}
    client.tell(RequestCode.END_TRANSACTION, fields | {"transactionId": sent.fields["transactionId"]})


def test_a_transaction_is_committed_or_rolled_back(client: ClassicClient) -> None:
    kept, dropped = half(client, "decided", "KEPT"), half(client, "decided", "DROPPED")
    assert client.pull("readers", "decided", 0, 1).code == ResponseCode.PULL_NOT_FOUND
    end(client, dropped, ROLLBACK)
    end(client, kept, COMMIT)
    answer = client.pull("readers", "decided", 0, 1, suspend=60_000)
    assert [one.body for one in records(answer)] == [b"KEPT"]
    assert client.pull("readers", "decided", 1, 1).code == ResponseCode.PULL_NOT_FOUND


def test_a_producer_is_asked_and_its_word_counts(client: ClassicClient) -> None:
    client.heartbeat(produces=("deciders",))
    sent = half(client, "asked-about", "ASKED")
    end(client, sent, UNKNOWN)
    asked = client.next_asked(RequestCode.CHECK_TRANSACTION_STATE)
    given = asked.fields
    assert (given["topic"], given["transactionId"], given["msgId"]) == ("asked-about", "ASKED", "ASKED")
    record = decode_record(asked.body)
    assert (record.topic, record.queue_id, record.body, record.size) == ("asked-about", 1, b"ASKED", len(asked.body))
    fields = {name: given[name] for name in ("tranStateTableOffset", "commitLogOffset", "transactionId", "msgId")}
    fields |= {"producerGroup": "deciders", "commitOrRollback": str(COMMIT), "fromTransactionCheck": "true"}
    client.tell(RequestCode.END_TRANSACTION, fields)
    answer = client.pull("readers", "asked-about", 0, 1, suspend=60_000)
    assert [one.body for one in records(answer)] == [b"ASKED"]


def reply(client: ClassicClient, requester: str, body: bytes) -> Answer:
    """SEND_REPLY_MESSAGE_V2."""
    given = {"MSG_TYPE": "reply", "REPLY_TO_CLIENT": requester, "CORRELATION_ID": "c1", "TTL": "3000"}
    header = send_header("DefaultCluster_REPLY_TOPIC", 0, "repliers", given)
    return client.call(RequestCode.SEND_REPLY_MESSAGE_V2, header, body)


def test_a_reply_goes_to_the_client_that_asked(connect: Connect) -> None:
    asking, answering = connect("asking"), connect("answering")
    asking.heartbeat(produces=("askers",))
    asking.answer = lambda request: request.answer()
    assert reply(answering, "asking", b"the answer").code == 0
    pushed = asking.next_asked(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)
    assert pushed.body == b"the answer"
    given = pushed.fields
    assert (given["topic"], given["producerGroup"]) == ("DefaultCluster_REPLY_TOPIC", "repliers")
    assert "CORRELATION_ID\1c1\2" in given["properties"]
    assert "PUSH_REPLY_TIME\1" in given["properties"]
    assert given["bornHost"].startswith("127.0.0.1:")
    missing = reply(answering, "nobody", b"too late")
    assert (missing.code, missing.remark) == (
        ResponseCode.SYSTEM_ERROR,
        "push reply message fail, channel of <nobody> not found.",
    )
    kept = records(answering.pull("g", "DefaultCluster_REPLY_TOPIC", 0))
    assert [one.body for one in kept] == [b"the answer", b"too late"], "both are stored"
