"""RocketMQ's own mqadmin of 4.9 and 5.3 against a store and our name server: the table in docs/mqadmin.md, executed."""

import re
from pathlib import Path

import pytest

from tests.integration.test_registration import address_of, store_under
from tests.interop.classic.mqadmin import VERSIONS, Mqadmin
from tests.names_process import NamesProcess

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mqadmin.md"
ONLY_5 = {"haStatus"}
"""What mqadmin of 4.9 does not have."""

STEPS = [
    ("updateTopic -b BROKER -t made -r 3 -w 3", "create topic to BROKER success"),
    ("updateTopic -c DefaultCluster -t other", "create topic to BROKER success"),
    ("updateTopicPerm -b BROKER -t made -p 4", "update topic perm from 6 to 4"),
    ("topicList", r"made\s"),
    ("topicRoute -t made", r'"perm":\s*4'),
    ("topicStatus -t T", r"ours\s+0\s+0\s+2 "),
    ("topicClusterList -t T", "DefaultCluster"),
    ("clusterList", r"ours\s+0\s+BROKER\s+V5_3_2"),
    ("clusterList -m", r"ours\s+0"),
    ("brokerStatus -b BROKER", r"commitLogMaxOffset\s+: \d+"),
    ("getBrokerConfig -b BROKER", r"brokerName\s+=\s+ours"),
    ("updateBrokerConfig -b BROKER -k fileReservedTime -v 7", "change broker.conf and start it again"),
    ("updateSubGroup -b BROKER -g G", "create subscription group to BROKER success"),
    ("getConsumerConfig -g G", r"groupName\s+=\s+G"),
    ("resetOffsetByTime -g G -t T -s 0", r"ours\s+3\s+0\s"),
    ("consumerProgress -g G", r"(Consume )?Diff Total: 5"),
    ("consumerProgress", r"G\s+0\s+"),
    ("brokerConsumeStats -b BROKER", "Diff Total: 5"),
    ("cloneGroupOffset -s G -d H -t T", "clone group offset success"),
    ("skipAccumulatedMessage -g G -t T", r"ours\s+0\s+2"),
    ("consumerProgress -g G", r"(Consume )?Diff Total: 0"),
    ("consumerConnection -g G", "not online"),
    ("producerConnection -g P -t T", "not exist"),
    ("producer -b BROKER", ""),
    ("statsAll", r"T\s+G\s"),
    ("queryMsgByKey -t T -k k1", r"[0-9A-F]{32}\s+\d\s+\d"),
    ("queryMsgByOffset -t T -b ours -i 0 -o 0", r"Keys:\s+\[k0\]"),
    ("queryCq -t T -q 0 -i 0 -c 3 -b BROKER", r"physicSize=\d+"),
    ("printMsg -t T", "MSGID: "),
    ("printMsgByQueue -t T -a ours -i 0 -p true", "MSGID: "),
    ("sendMessage -t T -p hello", "SEND_OK"),
    ("checkMsgSendRT -t T -a 2", "Avg RT"),
    ("cleanExpiredCQ -b BROKER", "success"),
    ("cleanUnusedTopic -b BROKER", "success"),
    ("deleteExpiredCommitLog -b BROKER", "success"),
    ("haStatus -b BROKER", "MasterCommitLogMaxOffset"),
    ("wipeWritePerm -b ours -n NAMES", r"OK, \d+"),
    ("addWritePerm -b ours -n NAMES", r"OK, \d+"),
    ("getNamesrvConfig -n NAMES", "namesPort"),
    ("updateKvConfig -s ns -k a -v b", "success"),
    ("deleteKvConfig -s ns -k a", "success"),
    ("updateOrderConf -t T -v ours:4 -m put", r"orderConf=\[ours:4\]"),
    ("updateOrderConf -t T -m get", r"orderConf=\[ours:4\]"),
    ("deleteSubGroup -b BROKER -g G", r"delete subscription group \[G\]"),
    ("deleteTopic -c DefaultCluster -t made", r"delete topic \[made\] from NameServer success"),
]
"""A command, and what its output must match; one after the other."""


def commands() -> set[str]:
    return {step.split()[0] for step, _ in STEPS}


def test_the_table_of_the_page_is_what_is_run_here() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("| `") and "✔" in line]
    assert {name for row in rows for name in re.findall("`(.*?)`", row[0])} == commands()


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", VERSIONS)
def test_mqadmin(version: str, tmp_path: Path) -> None:
    with NamesProcess(tmp_path / "names") as names, store_under(tmp_path / "store", names) as store:
        names.until_route("TBW102", {"ours": {"0": address_of(store)}})
        with store.client() as client:
            for number in range(5):
                client.send("T", b"body%d" % number, keys=[f"k{number}"])
        with Mqadmin(version, names.address, tmp_path / "mqadmin") as mqadmin:
            failed: list[str] = []
            for step, expected in STEPS:
                if step.split()[0] in ONLY_5 and version.startswith("4"):
                    continue
                known = {"BROKER": address_of(store), "NAMES": names.address}
                said = mqadmin.run(*(known.get(word, word) for word in step.split()))
                if not re.search(expected.replace("BROKER", re.escape(known["BROKER"])), said):
                    failed.append(f"mqadmin {step}\n{said[:1500]}")
            assert not failed, "\n".join(failed)
