"""What callers see of a store that is not ready, or ran full in the middle of a request."""

from typing import Any

import pytest

from tandemmq.common.slices import Slices
from tandemmq.store.broker.errors import StoreStarting
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import Ready, SendOutcome, SentAll, SentBatch
from tandemmq.store.format.host import ANY_HOST, Host
from tandemmq.store.format.message import Message
from tandemmq.store.fronts.native import answers
from tandemmq.store.fronts.native.limits import PullLimits, ServiceLimits
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.native.store_servicer import StoreServicer
from tandemmq.store.log.errors import DiskFull
from tandemmq.store.log.segments.commit_log import Appended, EncodedBatch
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import store_pb2
from tests.manual_timers import ManualTimers


class Peer:
    """The part of a call's context that handlers look at."""

    def peer(self) -> str:
        return "ipv4:1.2.3.4:5"


async def test_every_call_is_refused_while_the_store_recovers() -> None:
    servicer: Any = StoreServicer(ServiceLimits(PullLimits(1, 1)), StoreMetrics("c", "n"))
    requests = {
        "Send": store_pb2.SendRequest(),
        "SendBatch": store_pb2.SendBatchRequest(),
        "Pull": store_pb2.PullRequest(),
        "ViewMessage": store_pb2.ViewMessageRequest(),
        "QueryMessage": store_pb2.QueryMessageRequest(),
        "GetOffsets": store_pb2.GetOffsetsRequest(),
        "ListQueues": store_pb2.ListQueuesRequest(),
        "GetLog": store_pb2.GetLogRequest(),
    }
    for method, request in requests.items():
        with pytest.raises(StoreStarting):
            await getattr(servicer, method)(request, Peer())


async def test_a_request_that_was_stored_in_part_says_which() -> None:
    message = Message("orders", 3, b"")
    full = DiskFull("No room.", remedy="Make some.")
    ready = Ready(message, "unique", True)
    batch = EncodedBatch("orders", 1, b"", ANY_HOST, ANY_HOST)
    sent = SentAll(
        [SendOutcome(ready, Appended(7, 100, 5, 9, 107)), SendOutcome(ready, None, full)],
        [SentBatch(batch, None, full)],
        107,
        True,
    )
    answer = await answers.receipts(sent, PutStatus.PUT_OK, Slices(ManualTimers()))
    stored, failed = answer.receipts
    assert (stored.status, stored.physical_offset, stored.queue_offset, stored.reason) == (store_pb2.PUT_OK, 7, 5, "")
    assert (failed.status, failed.message_id) == (store_pb2.SERVICE_NOT_AVAILABLE, "")
    assert failed.reason == "No room. (Make some.)"
    assert answer.batch_receipts[0].status == store_pb2.SERVICE_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:1.2.3.4:5", Host("1.2.3.4", 5)),
        ("ipv6:%5B::1%5D:5", Host("::1", 5)),
        ("ipv6:[::1]:5", Host("::1", 5)),
        ("ipv6:%5B::ffff:1.2.3.4%5D:5", Host("1.2.3.4", 5)),
        ("unix:/tmp/x", ANY_HOST),
        ("", ANY_HOST),
    ],
)
def test_the_address_of_a_peer(peer: str, host: Host) -> None:
    assert peer_host(peer) == host
