"""Five hundred topics and an hour of history, clicked through on a wide and on a narrow screen."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.admin_process import AdminProcess, lone_node, running
from tests.console.conftest import PATIENT
from tests.console.hour_admin import GROUPS, TOPICS, group_name, topic_name
from tests.console.screen import Screen, screen
from tests.faults.pair import Node
from tests.faults.pair_process import until

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.slow]

WIDTHS = (1280, 390)
WRITTEN = 70
"""Topics that have messages: the first has one, the next has two, and so on."""

PAGES = (
    "cluster", "topics", "topics?sort=-messages&rows=1000", "topics/bulk-007", "messages?topic=bulk-007",
    "messages/bulk-007/0/0", "tail?topic=bulk-007&last=5", "groups", "groups?sort=-lag&rows=200",
    "groups/crowd-003", "waiting", "dead-letters", "jobs", "actions", "users", "configuration?all=1",
)  # fmt: skip

OVERFLOW = """() => ({
    page: Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
    tables: [...document.querySelectorAll(".table")].filter((one) => one.scrollWidth > one.clientWidth).length,
    charts: [...document.querySelectorAll(".chart")].filter((one) => one.scrollWidth > one.clientWidth).length,
})"""


class HourAdmin(AdminProcess):
    """An admin that knows an hour already."""

    module = "tests.console.hour_admin"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the console of a broker with all these topics and groups is."""
    directory = tmp_path_factory.mktemp("large")
    node = lone_node(directory / "node")
    with running(node), HourAdmin(directory / "own", {"alpha": node}, **PATIENT) as admin:
        fill(node, admin)
        yield str(admin.event("console")["url"])


def fill(node: Node, admin: AdminProcess) -> None:
    metasync = MetadataStub(node._channel("metasync"))
    topics = [
        metadata_pb2.TopicConfig(name=topic_name(number), read_queues=1 + number % 3, write_queues=1, perm=6)
        for number in range(TOPICS)
    ]
    metasync.PutTopics(metadata_pb2.PutTopicsRequest(topics=topics), timeout=60)
    groups = [metadata_pb2.SubscriptionGroupConfig(name=group_name(number)) for number in range(GROUPS)]
    metasync.PutGroups(metadata_pb2.PutGroupsRequest(groups=groups), timeout=60)
    with node.client() as client:
        until(lambda: len({one.topic for one in client.queues().topics}) >= TOPICS, 60, "the store knows the topics")
        for number in range(WRITTEN):
            for turn in range(number + 1):
                client.send(topic_name(number), f"message {turn}".encode(), keys=[f"k{turn}"], queue_id=0)
    commits = [
        metadata_pb2.OffsetCommit(topic=topic_name(number % WRITTEN), group=group_name(number), queue_id=0, offset=0)
        for number in range(GROUPS)
    ]
    answer = metasync.CommitOffsets(metadata_pb2.CommitOffsetsRequest(commits=commits), timeout=60)
    assert all(one.status == metadata_pb2.COMMITTED for one in answer.results), answer
    listed = pb.ListTopicsRequest(match=topic_name(WRITTEN - 1))
    until(lambda: admin.stub.ListTopics(listed, timeout=60).topics[0].messages == WRITTEN, 60, "admin knows the ends")


@pytest.fixture(params=WIDTHS)
def window(request: pytest.FixtureRequest, browser: Browser, large: str) -> Iterator[Screen]:
    """A window; nothing may go wrong in it unseen."""
    with screen(browser, large, width=request.param) as window:
        yield window
        assert not window.complaints


def is_narrow(window: Screen) -> bool:
    size = window.page.viewport_size
    return size is not None and size["width"] < 620


def names(window: Screen) -> Locator:
    """The first cell of each row of a list."""
    return window.page.locator("main tbody tr td:first-child a")


def fits(window: Screen) -> None:
    """Nothing is wider than the screen; tables may be scrolled where the screen is wide."""
    assert window.page.evaluate(OVERFLOW) == {"page": 0, "tables": 0, "charts": 0}, window.page.url


def test_every_page_fits_and_charts_show_the_whole_hour(window: Screen) -> None:
    for route in PAGES:
        window.open(route)
        fits(window)
        assert window.page.get_by_role("alert").count() == 0, route
        if directory := os.environ.get("TANDEM_TEST_PICTURES"):  # for whoever wants to look at them
            name = re.sub(r"\W+", "-", route)
            width = window.page.evaluate("window.innerWidth")
            window.page.screenshot(path=Path(directory) / f"{name}-{width}.png", full_page=True)
    for route, charts in (("cluster", 7), ("topics/bulk-007", 2), ("groups/crowd-003", 3)):
        window.open(route)
        drawn = window.page.locator(".chart")
        assert drawn.count() >= charts, route
        path = drawn.first.locator("path").get_attribute("d") or ""
        assert path.count("M") >= 2, "the time when nobody knows is a gap"
        assert path.count("L") > 200, "an hour"
        x = [float(one) for one in re.findall(r"[ML]([\d.]+)", path)]
        assert min(x) < 3, "the line begins at the left"
        assert max(x) > 290, "and ends at the right"


def test_lists_are_paged_to_their_end_by_name_and_by_another_column(window: Screen) -> None:
    for route, first in (("topics", topic_name(0)), ("topics?sort=-messages", topic_name(WRITTEN - 1))):
        window.open(route)
        expect(names(window).first).to_have_text(first)
        expect(window.page.locator(".pager")).to_contain_text(f"50 of {TOPICS} topics")
        seen = set(names(window).all_inner_texts())
        for _ in range(TOPICS // 50 - 1):
            window.page.evaluate("document.getElementById('main').setAttribute('aria-busy', 'true')")
            window.link("Next page").click()
            expect(window.page.locator("main[aria-busy=false]")).to_have_count(1)
            seen |= set(names(window).all_inner_texts())
        assert seen == {topic_name(number) for number in range(TOPICS)}, route
        expect(window.link("Next page")).to_have_count(0)
        fits(window)
        window.link("First page").click()
        expect(names(window).first).to_have_text(first)


def test_lists_are_sorted_by_every_column(window: Screen) -> None:
    window.open("topics")
    sorted_by(window, "Messages", "Messages, most first")
    expect(names(window).first).to_have_text(topic_name(WRITTEN - 1))
    sorted_by(window, "Messages", "Messages, least first")
    expect(names(window).first).to_have_text(topic_name(WRITTEN))
    for column, choice in (("Queues", "Queues, most first"), ("Permission", "Permission")):
        sorted_by(window, column, choice)
        expect(names(window)).to_have_count(50)
    window.open("groups")
    for column in ("Lag", "In flight", "Attempts", "Oldest", "Members", "Dead letters"):
        sorted_by(window, column, f"{column}, most first")
        expect(names(window)).to_have_count(50)
    sorted_by(window, "Topics", "Topics")
    expect(names(window).first).to_have_text(group_name(0))
    window.page.reload()  # the address says it all
    expect(names(window).first).to_have_text(group_name(0))
    fits(window)


def sorted_by(window: Screen, column: str, choice: str) -> None:
    if is_narrow(window):
        window.page.get_by_label("Sort by").select_option(choice)
        return
    expect(window.page.get_by_label("Sort by")).to_be_hidden()
    window.page.get_by_role("columnheader", name=column, exact=False).get_by_role("button").click()


def test_lists_are_searched_and_dialogs_are_left_by_going_back(window: Screen) -> None:
    window.open("topics?rows=200")
    expect(names(window)).to_have_count(200)
    window.page.get_by_label("Search").fill("bulk-04")
    expect(names(window)).to_have_count(10)
    window.page.get_by_label("Search").fill("bulk-*7")
    expect(names(window)).to_have_count(TOPICS // 10)
    window.button("New topic").click()
    left_by_going_back(window)
    expect(names(window)).to_have_count(TOPICS // 10)
    for route, buttons in (
        ("topics/bulk-007", ("Send a message", "Change", "Delete")),
        ("groups", ("New group",)),
        ("groups/crowd-003", ("Reset offsets", "Change", "Delete")),
        ("jobs", ("Start a job",)),
    ):
        for button in buttons:
            window.open(route)
            window.button(button).click()
            left_by_going_back(window)
            assert window.page.url.endswith(f"#/{route}")


def left_by_going_back(window: Screen) -> None:
    expect(window.dialog()).to_be_visible()
    fits(window)
    width = window.page.evaluate("document.querySelector('dialog').getBoundingClientRect().width - window.innerWidth")
    assert width <= 0, "the dialog fits"
    window.page.go_back()
    expect(window.page.get_by_role("dialog")).to_have_count(0)
