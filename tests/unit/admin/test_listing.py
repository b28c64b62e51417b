"""Pages of names, and what a name is."""

import pytest

from tandemmq.admin.catalogue.listing import Page, checked_limit, matcher, page_of
from tandemmq.admin.catalogue.topic_kinds import topic_kind
from tandemmq.admin.errors import BadAdminRequest
from tandemmq.admin.v1 import admin_pb2

NAMES = ["b", "a", "d", "c"]


def test_pages_cover_all_names_once_and_the_last_one_says_so() -> None:
    assert page_of(NAMES, "", 2) == Page(["a", "b"], 4, "b")
    assert page_of(NAMES, "b", 2) == Page(["c", "d"], 4, "")
    assert page_of(NAMES, "bb", 1) == Page(["c"], 4, "c")
    assert page_of(NAMES, "d", 2) == Page([], 4, "")
    assert page_of([], "", 2) == Page([], 0, "")


def test_limits() -> None:
    assert (checked_limit(0), checked_limit(1), checked_limit(1000)) == (100, 1, 1000)
    for limit in (-1, 1001):
        with pytest.raises(BadAdminRequest, match="1,000 are allowed"):
            checked_limit(limit)


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ("", ["Orders", "orders-2", "%DLQ%orders", "my.orders"]),
        ("ORDER", ["Orders", "orders-2", "%DLQ%orders", "my.orders"]),
        ("s-", ["orders-2"]),
        ("orders*", ["orders-2"]),
        ("?rders", ["Orders"]),
        ("*.orders", ["my.orders"]),
        ("[o]*", []),
    ],
)
def test_matching(match: str, found: list[str]) -> None:
    wanted = matcher(match)
    assert [name for name in ("Orders", "orders-2", "%DLQ%orders", "my.orders") if wanted(name)] == found


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("orders", admin_pb2.NORMAL),
        ("%RETRY%g", admin_pb2.RETRY),
        ("%DLQ%g", admin_pb2.DEAD_LETTER),
        ("SCHEDULE_TOPIC_XXXX", admin_pb2.SYSTEM),
        ("rmq_sys_REVIVE_LOG_x", admin_pb2.SYSTEM),
        ("DefaultCluster_REPLY_TOPIC", admin_pb2.SYSTEM),
        ("broker-a", admin_pb2.SYSTEM),
    ],
)
def test_kinds(name: str, kind: int) -> None:
    assert topic_kind(name, frozenset({"broker-a"})) == kind
