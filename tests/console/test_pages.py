"""The pages, clicked through in a real browser."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig
from tests import captured_traces as captured
from tests.admin_process import AdminProcess
from tests.campaigns import in_campaigns
from tests.console.kit import DEAD_LETTERS, keep_troubled
from tests.console.screen import Screen, screen
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("console")


@pytest.fixture
def window(browser: Browser, url: str) -> Iterator[Screen]:
    """A window; nothing may go wrong in it unseen."""
    with screen(browser, url) as window:
        yield window
        assert not window.complaints


def test_cluster_shows_nodes_and_replication(window: Screen) -> None:
    window.open("")
    window.heading("Cluster")
    picture = window.page.get_by_role("img", name=re.compile("Replication of pair. Master alpha. beta: in sync"))
    expect(picture).to_be_visible()
    master = window.page.get_by_role("article", name="Node alpha")
    expect(master).to_contain_text("master")
    for service in ("store", "replicator", "metasync"):
        expect(master).to_contain_text(service)
    expect(master.get_by_role("progressbar", name="Disk used")).to_be_visible()
    expect(window.page.get_by_role("article", name="Node beta")).to_contain_text("following")
    with window.page.expect_response("**/api/GetCluster"):  # by itself
        window.later()


def test_a_support_bundle_is_downloaded(window: Screen, tmp_path: Path) -> None:
    window.open("cluster")
    with window.page.expect_download() as download:
        window.button("Support bundle").click()
    path = tmp_path / "bundle.zip"
    download.value.save_as(path)
    assert zipfile.ZipFile(path).testzip() is None
    window.notice("downloaded")


def test_a_topic_from_its_creation_to_its_end(window: Screen, admin: AdminProcess) -> None:
    name = "made-by-hand"
    window.open("topics")
    window.button("New topic").click()
    window.dialog().get_by_label("Name", exact=True).fill("not a name!")
    window.button("Create").click()
    expect(window.dialog().get_by_role("alert")).to_contain_text("not a name!")
    window.dialog().get_by_label("Name", exact=True).fill(name)
    window.dialog().get_by_label("Queues to write to").fill("2")
    window.dialog().get_by_label("Queues to read from").fill("2")
    window.button("Create").click()
    window.heading(name)
    window.button("Send a message").click()
    window.dialog().get_by_label("Body").fill('{"greeting": "grüße"}')
    window.dialog().get_by_label("Keys").fill("hello")
    window.dialog().get_by_label("Queue", exact=True).fill("1")
    window.button("Send").click()
    window.notice("Stored in queue 1 at offset 0.")
    expect(window.page.locator(".facts").first).to_contain_text("Messages1")
    window.button("Change").click()
    window.dialog().get_by_label("Permission").select_option("4")
    window.dialog().get_by_label("Queues to read from").fill("3")
    window.dialog().get_by_label("Ordered").check()
    window.dialog().get_by_label("Attributes").fill("message.type=FIFO")
    window.dialog().get_by_label("Keep messages for").fill("6")
    window.dialog().get_by_role("button", name="Change").click()
    window.notice("was changed")
    expect(window.page.locator(".facts").first).to_contain_text("message.type=FIFO")
    expect(window.page.locator(".facts").first).to_contain_text("Messages keptfor 6 h")
    config = admin.stub.GetTopic(pb.GetTopicRequest(topic=name), timeout=60).topics[0].config
    assert dict(config.attributes) == {"message.type": "FIFO", "reserve.time": "6"}
    window.button("Change").click()
    expect(window.dialog().get_by_label("Attributes")).to_have_value("message.type=FIFO")
    expect(window.dialog().get_by_label("Keep messages for")).to_have_value("6")
    window.dialog().get_by_label("Keep messages for").fill("")
    window.dialog().get_by_label("Ordered").uncheck()
    window.dialog().get_by_label("Attributes").fill("")
    window.dialog().get_by_role("button", name="Change").click()
    expect(window.page.locator(".facts").first).not_to_contain_text("Ordered")
    expect(window.page.locator(".facts").first).to_contain_text("3 to read from, 2 to write to")
    config = admin.stub.GetTopic(pb.GetTopicRequest(topic=name), timeout=60).topics[0].config
    assert (config.read_queues, config.write_queues, config.perm) == (3, 2, 4)
    assert (config.order, dict(config.attributes)) == (False, {})
    window.link("Newest").click()
    window.heading("Queue 1, offset 0")
    expect(window.page.locator("pre")).to_contain_text("grüße")
    window.page.go_back()
    window.heading(name)
    window.button("Delete").click()
    confirm = window.dialog().get_by_role("button", name="Delete")
    expect(confirm).to_be_disabled()
    window.dialog().get_by_label("to confirm").fill(name[:-1])
    expect(confirm).to_be_disabled()
    window.dialog().get_by_label("to confirm").fill(name)
    confirm.click()
    window.heading("Topics")
    window.notice("was deleted")
    expect(window.row(name)).to_contain_text("no configuration")  # its messages are in the log until they expire


def test_topics_are_searched_filtered_and_paged(window: Screen, admin: AdminProcess) -> None:
    admin.put_topics([f"page-{number:03}" for number in range(60)], queues=1)
    window.open("topics?match=page-*")
    expect(window.page.locator("tbody tr")).to_have_count(50)
    window.link("Next page").click()
    expect(window.page.locator("tbody tr")).to_have_count(10)
    window.link("First page").click()
    expect(window.page.locator("tbody tr")).to_have_count(50)
    search = window.page.get_by_label("Search")
    search.fill("page-00")
    expect(window.page.locator("tbody tr")).to_have_count(10)
    expect(search).to_be_focused()
    assert "match=page-00" in window.page.url
    search.fill("no topic is called so")
    expect(window.page.locator(".empty")).to_be_visible()
    search.fill("")
    window.page.get_by_label("Kind").select_option("dead")
    expect(window.row("%DLQ%billing")).to_be_visible()
    expect(window.row("orders")).to_have_count(0)
    window.page.reload()  # the address says it all
    expect(window.row("%DLQ%billing")).to_be_visible()


def test_messages_are_found_in_every_way(window: Screen) -> None:
    window.open("topics/orders")
    window.page.locator("main").get_by_role("link", name="Messages").click()
    window.heading("Messages")
    expect(window.page.locator("tbody tr")).to_have_count(50)
    expect(window.page.locator("tbody tr").first).to_contain_text("o59")
    window.link("Earlier messages").click()
    expect(window.page.locator("tbody tr").last).to_contain_text("o0")
    window.page.get_by_label("Order").select_option("oldest")
    window.page.get_by_label("To", exact=True).fill("")
    window.button("Find").click()
    expect(window.page.locator("tbody tr").first).to_contain_text("o0")
    window.link("Later messages").click()
    expect(window.row("o59")).to_be_visible()
    window.page.get_by_label("Find").select_option("key")
    window.page.get_by_label("Key", exact=True).fill("o17")
    window.button("Find").click()
    expect(window.page.locator("tbody tr")).to_have_count(1)
    expect(window.row("o17")).to_contain_text('"order": 1017')
    window.row("o17").get_by_role("link").click()
    window.heading("Queue 1, offset 4")
    facts = window.page.locator(".facts").first
    unique = facts.locator("dt:text-is('Unique key') + dd").inner_text()
    message_id = facts.locator("dt:text-is('Message id') + dd").inner_text()
    expect(facts).to_contain_text("warehouse")
    for way, label, value in (("unique", "Unique key", unique), ("id", "Message id", message_id)):
        window.open(f"messages?topic=orders&by={way}")
        window.page.get_by_label(label, exact=True).fill(value)
        window.button("Find").click()
        expect(window.row("o17")).to_be_visible()
    window.open("messages?topic=orders&by=place")
    window.page.get_by_label("Queue", exact=True).fill("1")
    window.page.get_by_label("Offset", exact=True).fill("4")
    window.button("Find").click()
    expect(window.row("o17")).to_be_visible()
    window.page.get_by_label("Offset", exact=True).fill("4000")
    window.button("Find").click()
    expect(window.page.locator(".empty")).to_contain_text("no message")


def test_messages_are_filtered_by_what_is_in_them(window: Screen) -> None:
    window.open("messages?topic=orders")
    window.page.get_by_label("Where").fill("body.order >= 1050 and body.customer = c-1")
    window.button("Find").click()
    expect(window.page.locator("tbody tr")).to_have_count(2)
    expect(window.page.locator(".pager")).to_contain_text("2 messages among 60 that were read")
    window.page.get_by_label("Containing").fill("VIP")
    window.button("Find").click()
    expect(window.page.locator("tbody tr")).to_have_count(1)
    window.page.reload()  # the address says it all
    expect(window.row("o57")).to_be_visible()
    window.page.get_by_label("Where").fill("order = 1")
    window.button("Find").click()
    expect(window.page.get_by_role("alert")).to_contain_text("body.NAME or property.NAME")


def test_a_message_is_shown_as_json_text_and_hex(window: Screen) -> None:
    window.open("messages/orders/0/0")
    body = window.page.locator("pre")
    expect(body).to_contain_text('"order": 1000,\n')
    window.button("Text").click()
    expect(body).to_have_text(re.compile(r'^\{"order": 1000, "customer"'))
    window.button("Hex").click()
    expect(body).to_contain_text("00000000  7b 22 6f 72 64 65 72")
    window.page.get_by_role("link", name="Next").click()
    window.heading("offset 1")
    window.open("messages/shipments/1/0")
    expect(window.button("Text")).to_have_count(0)
    expect(window.page.locator("pre")).to_contain_text("000000f0  f0 f1")
    window.open("messages/orders/0/999999")
    expect(window.page.get_by_role("alert")).to_contain_text("999999")


def test_the_way_of_a_message_is_shown(window: Screen, admin: AdminProcess) -> None:
    window.open("messages/orders/0/0")
    expect(window.page.locator("main")).to_contain_text("No client has told of it")
    properties = {"UNIQ_KEY": captured.PLAIN_4_9_7}
    receipt = admin.stub.SendMessage(
        pb.SendMessageRequest(topic="payments", body=b"plain", queue_id=1, properties=properties), timeout=60
    ).receipt
    for body, keys in captured.KEYED:
        admin.stub.SendMessage(pb.SendMessageRequest(topic="RMQ_SYS_TRACE_TOPIC", body=body, keys=keys), timeout=60)
    window.open(f"messages/payments/1/{receipt.queue_offset}")
    expect(window.row("group-t_producers")).to_contain_text("published")
    expect(window.row("group-t_producers")).to_contain_text("37 ms")
    expect(window.row("consumed, try 2")).to_contain_text("success")


def test_a_topic_is_followed_live(window: Screen, pair: Pair) -> None:
    window.open("tail?topic=payments&last=0")
    expect(window.page.locator(".badge", has_text="following")).to_be_visible()
    with pair.master.client() as client:

        def seen() -> bool:
            client.send("payments", b"live one", tag="quick", keys=["live"])
            return window.row("live one").count() > 0

        until(seen, 60, lambda: "a message is shown")
        window.button("Pause").click()
        client.send("payments", b"live two")
        expect(window.page.locator(".badge", has_text=re.compile(r"[1-9]\d* came since"))).to_be_visible()
        expect(window.row("live two")).to_have_count(0)
        window.button("Go on").click()
        client.send("payments", b"live three")
        expect(window.row("live three")).to_be_visible()
        window.page.get_by_label("Tags").fill("slow")
        window.page.get_by_label("Begin").select_option("5")
        window.button("Follow").click()
        expect(window.row("live three")).to_have_count(0)
        client.send("payments", b"live four", tag="slow")
        expect(window.row("live four")).to_be_visible()


def test_offsets_are_reset_after_a_preview(window: Screen, admin: AdminProcess) -> None:
    def offsets() -> list[int]:
        details = admin.stub.GetGroup(pb.GetGroupRequest(group="mails"), timeout=60)
        return [one.offset for one in details.progress if one.topic == "payments"][:1]

    window.open("groups")
    window.row("mails").get_by_role("link", name="mails").click()
    window.heading("mails")
    window.button("Reset offsets").click()
    dialog = window.dialog()
    dialog.get_by_label("Go to").select_option("offset")
    dialog.get_by_label("Offset", exact=True).fill("3")
    dialog.get_by_label("Queues").fill("0")
    dialog.get_by_role("button", name="Preview").click()
    moves = dialog.get_by_role("table", name="What the reset would do").locator("tbody tr")
    expect(moves).to_have_count(1)
    assert [cell.strip() for cell in moves.locator("td").all_inner_texts()][:4] == ["pair", "0", "2", "3"]
    assert offsets() == [2]
    dialog.get_by_label("Offset", exact=True).fill("5")  # another wish: the preview goes
    expect(moves).to_have_count(0)
    dialog.get_by_role("button", name="Preview").click()
    expect(moves).to_have_count(1)
    dialog.get_by_role("button", name="Reset", exact=True).click()
    window.notice("1 queue was reset")
    assert offsets() == [5]
    for target in ("earliest", "latest", "time", "shift"):
        window.button("Reset offsets").click()
        window.dialog().get_by_label("Go to").select_option(target)
        window.dialog().get_by_role("button", name="Preview").click()
        expect(window.dialog().get_by_role("button", name="Reset", exact=True)).to_be_visible()
        window.dialog().get_by_role("button", name="Cancel").click()
        expect(window.page.get_by_role("dialog")).to_have_count(0)
    assert offsets() == [5]


def test_groups_are_sorted_created_changed_and_deleted(window: Screen, admin: AdminProcess) -> None:
    window.open("groups")
    names = window.page.locator("tbody tr td:first-child a")
    by_name = names.all_inner_texts()
    window.button("Lag").click()
    column = window.page.get_by_role("columnheader", name="Lag")
    expect(column).to_have_attribute("aria-sort", "descending")
    lags = [one.lag for one in admin.stub.ListGroups(pb.ListGroupsRequest(limit=1000), timeout=60).groups]
    cells = window.page.locator('td[data-label="Lag"]')
    expect(cells).to_have_text([f"{lag:,}" for lag in sorted(lags, reverse=True)])
    column.get_by_role("button").click()
    expect(column).to_have_attribute("aria-sort", "ascending")
    column.get_by_role("button").click()
    expect(column).not_to_have_attribute("aria-sort", "ascending")
    expect(names).to_have_text(by_name)
    window.button("New group").click()
    window.dialog().get_by_label("Name", exact=True).fill("by-hand")
    window.dialog().get_by_label("Retries before dead letters").fill("3")
    window.button("Create").click()
    window.heading("by-hand")
    expect(window.page.locator(".facts")).to_contain_text("3, then dead letters")
    expect(window.page.locator(".facts")).to_contain_text("1s to 2h in 18 steps")
    window.button("Change").click()
    waits = window.dialog().get_by_label("Retry policy")
    for wrong in ("soon", "10s, 5", "2h..5s", "0s..1m", "41d"):
        waits.fill(wrong)
        window.dialog().get_by_role("button", name="Change").click()
        expect(window.dialog().get_by_role("alert")).to_be_visible()
    waits.fill("10s, 1.5m,5m")
    window.dialog().get_by_label("It may consume").uncheck()
    window.dialog().get_by_role("button", name="Change").click()
    expect(window.page.locator(".facts")).to_contain_text("May consumeno")
    config = admin.stub.GetGroup(pb.GetGroupRequest(group="by-hand"), timeout=60).groups[0].config
    assert (config.consume_enable, config.retry_max_times) == (False, 3)
    policy = json.loads(config.other_json)["groupRetryPolicy"]
    assert policy == {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [10_000, 90_000, 300_000]}}
    window.button("Change").click()
    expect(waits).to_have_value("10s,90s,5m")
    waits.fill("5s..2h*3")
    window.dialog().get_by_role("button", name="Change").click()
    expect(window.page.locator(".facts")).to_contain_text("5s..2h*3")
    odd = SubscriptionGroupConfig(
        name="by-hand", other_json='{"groupRetryPolicy":{"customizedRetryPolicy":{"next":7}}}'
    )
    admin.stub.PutGroup(pb.PutGroupRequest(config=odd), timeout=60)
    window.later()
    expect(window.page.locator(".facts")).to_contain_text("1s to 2h in 18 steps")
    window.button("Delete").click()
    window.dialog().get_by_label("to confirm").fill("by-hand")
    window.dialog().get_by_role("button", name="Delete").click()
    window.heading("Consumer groups")
    expect(window.row("by-hand")).to_have_count(0)


def test_dead_letters_are_exported_and_sent_again(window: Screen, admin: AdminProcess, tmp_path: Path) -> None:
    def returned() -> int:
        return admin.stub.GetTopic(pb.GetTopicRequest(topic="returns"), timeout=60).topics[0].messages

    window.open("dead-letters")
    window.row("billing").get_by_role("link").click()
    window.heading("billing")
    expect(window.page.locator("tbody tr")).to_have_count(DEAD_LETTERS)
    with window.page.expect_download() as download:
        window.button("Export").click()
    path = tmp_path / "letters.jsonl"
    download.value.save_as(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["text"] for line in lines] == [f"letter {number}" for number in range(DEAD_LETTERS)]
    assert all(line["properties"]["DLQ_ORIGIN_TOPIC"] == "returns" for line in lines)
    before = returned()
    expect(window.button("Send 0 again")).to_be_disabled()
    window.page.get_by_label("Choose message at offset 1").check()
    window.page.get_by_label("Choose message at offset 3").check()
    window.button("Send 2 again").click()
    expect(window.dialog().get_by_role("table")).to_contain_text("returns")
    assert returned() == before
    window.dialog().get_by_role("button", name="Send again").click()
    window.notice("2 messages were sent again")
    until(lambda: returned() == before + 2, 60, lambda: f"{returned()} are there")
    window.page.get_by_label("Choose message at offset 1").check()
    window.button("Send 1 again").click()
    window.dialog().get_by_label("Also the 1 of which a copy was sent before").check()
    window.dialog().get_by_role("button", name="Send again").click()
    window.notice("1 messages were sent again")
    until(lambda: returned() == before + 3, 60, lambda: f"{returned()} are there")
    window.button("Choose all of these").click()
    expect(window.button(f"Send {DEAD_LETTERS} again")).to_be_enabled()


def test_jobs_run_report_and_are_cancelled(window: Screen) -> None:
    window.open("jobs")
    window.button("Start a job").click()
    window.dialog().get_by_label("Node").select_option("beta")
    window.button("Start").click()
    window.heading("audit of beta")
    window.page.locator(".badge", has_text=re.compile("succeeded|failed")).wait_for(timeout=150_000)
    expect(window.page.locator(".facts")).to_contain_text("Faults0")
    expect(window.page.get_by_label("Report")).to_contain_text('"faults": 0')
    window.page.get_by_role("link", name="Jobs").first.click()
    expect(window.row("audit").first).to_contain_text("beta")
    window.button("Start a job").click()
    window.button("Start").click()
    window.heading("audit of alpha")
    window.button("Cancel").click()
    window.button("Cancel the job").click()
    expect(window.page.locator(".badge", has_text="cancelled")).to_be_visible()


def test_settings_show_where_they_come_from(window: Screen) -> None:
    window.open("configuration")
    expect(window.row("brokerName").first).to_contain_text("store.conf line")
    expect(window.row("maxPullMessages")).to_have_count(0)
    window.page.get_by_label("Changed only").uncheck()
    expect(window.row("maxPullMessages").first).to_be_visible()
    window.page.get_by_label("Search").fill("maxPullMessages")
    expect(window.page.locator("tbody tr")).to_have_count(1)
    window.page.get_by_label("Node").select_option("beta")
    expect(window.page.get_by_role("heading", name="replicator")).to_be_visible()


def test_actions_are_listed(window: Screen, admin: AdminProcess) -> None:
    admin.put_topics(["acted-upon"])
    window.open("actions")
    expect(window.row("acted-upon").first).to_contain_text("PutTopic")
    expect(window.row("acted-upon").first).to_contain_text("OK")


def test_a_broken_link_is_red_and_a_dead_service_is_named(window: Screen, pair: Pair) -> None:
    window.open("cluster")
    pair.slave.replicator.kill()
    try:
        expect(window.page.locator(".picture .link.bad")).to_be_visible()
        expect(window.page.get_by_role("article", name="Node beta").locator(".problems")).to_contain_text("replicator")
        expect(window.page.locator(".summary .badge")).to_contain_text("problem")
    finally:
        pair.heal()
    expect(window.page.locator(".picture .link.good")).to_be_visible()


def test_a_group_in_trouble_shows_what_is_wrong(window: Screen, pair: Pair) -> None:
    keep_troubled(pair)
    window.open("groups")
    row = window.row("troubled")
    expect(row).to_contain_text("mixed")
    expect(row).to_contain_text("subscriptions differ")
    window.link("troubled").click()
    window.heading("troubled")
    facts = window.page.locator(".facts").first
    expect(facts).to_contain_text("In flight3 messages")
    expect(facts).to_contain_text("messages may come twice")
    members = window.page.get_by_role("table", name="Members")
    expect(members).to_contain_text("worker-2@10.0.0.8")
    expect(members).to_contain_text("new || vip")
    expect(members).to_contain_text("differs")


def test_a_failing_message_is_shown_with_its_attempts_at_its_group_and_on_its_page(window: Screen, pair: Pair) -> None:
    keep_troubled(pair)
    window.open("groups/troubled")
    failing = window.page.get_by_role("table", name="Fails on").get_by_role("row").nth(1)
    expect(failing).to_contain_text("returns004ready")
    failing.get_by_role("link").click()
    window.heading("Queue 0, offset 0")
    standing = window.page.get_by_role("table", name="Not dealt with").get_by_role("row").nth(1)
    expect(standing).to_contain_text("troubled4ready")
    expect(window.page.locator("pre")).to_contain_text("return 0")


def test_a_message_that_waits_for_its_time_is_found_by_key(window: Screen, pair: Pair) -> None:
    with pair.master.client() as client:
        client.send("orders", b"tomorrow", keys=["o-tomorrow"], properties={"TIMER_DELAY_SEC": "86400"})
    route = "messages?topic=orders&by=key&key=o-tomorrow"
    window.open(route)
    until(lambda: _found(window, "waits until"), 60, "it is in the index")
    window.row("waits until").get_by_role("link").click()
    expect(window.page.locator("pre")).to_contain_text("tomorrow")


def _found(window: Screen, text: str) -> bool:
    window.page.reload()
    expect(window.page.locator("main .table, main .empty").first).to_be_visible()
    return window.row(text).count() > 0


def test_what_waits_is_shown(window: Screen) -> None:
    window.open("waiting")
    window.heading("Waiting")
    expect(window.row("delay level 18")).to_contain_text("1")
    half = window.row("tellers")
    expect(half).to_contain_text("payments")
    expect(half).to_contain_text("times")


@pytest.mark.parametrize("width", [390, *in_campaigns(1280)])
@pytest.mark.parametrize("route", ["groups", "groups/troubled", "waiting"])
def test_nothing_of_a_group_in_trouble_is_cut_off(
    browser: Browser, url: str, pair: Pair, route: str, width: int
) -> None:
    keep_troubled(pair)
    with screen(browser, url, width=width) as window:
        window.open(route)
        hidden = "[...document.querySelectorAll('.table')].filter((one) => one.scrollWidth > one.clientWidth).length"
        assert window.page.evaluate(hidden) == 0
        assert window.page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
