"""RocketMQ's own mqadmin of 4.9 and 5.3 against a store and our name server: the table in docs/mqadmin.md, executed."""

import json
import re
from pathlib import Path

import pytest

from tandemmq.common.wire.remoting.codes import RequestCode
from tests.contract.remoting.classic_client import ClassicClient
from tests.integration.test_registration import address_of, store_under
from tests.interop.classic.mqadmin import VERSIONS, Mqadmin
from tests.names_process import NamesProcess

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mqadmin.md"
REFUSED_4 = "updateAclConfig deleteAclConfig clusterAclConfigVersion updateGlobalWhiteAddr getAclConfig"
REFUSED_5 = """
    updateStaticTopic addBroker removeBroker resetMasterFlushOffset getBrokerEpoch getSyncStateSet getControllerMetaData
    getControllerConfig updateControllerConfig electMaster cleanBrokerMetadata getColdDataFlowCtrInfo
    updateColdDataFlowCtrGroupConfig removeColdDataFlowCtrGroupConfig setCommitLogReadAheadMode createUser updateUser
    deleteUser getUser listUser copyUser createAcl updateAcl deleteAcl getAcl listAcl copyAcl exportPopRecord
    checkRocksdbCqWriteProgress
"""
ONLY_4 = set(REFUSED_4.split())
"""What mqadmin of 5.3 does not have."""
ONLY_5 = {"haStatus", "updateTopicList", "updateSubGroupList", "setConsumeMode", *REFUSED_5.split()}
"""What mqadmin of 4.9 does not have."""
NOT_RUN = {"startMonitoring", "clusterRT"}
"""They do not end."""
NO_REQUEST = {"remappingStaticTopic", "dumpCompactionLog", "exportMetadataInRocksDB", "rocksDBConfigToJson"}
"""They ask no broker, or not before static topics are there."""

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
    ("queryMsgById -i ID -t T", r"OffsetID:\s+[0-9A-F]{32}"),
    ("queryMsgByUniqueKey -t T -i UNIQUE", "UNIQ_KEY=UNIQUE"),
    ("queryMsgTraceById -i UNIQUE -t RMQ_SYS_TRACE_TOPIC", "query message by key finished, but no message"),
    ("consumeMessage -t T", r"MSGID: [0-9A-F]{32}"),
    ("sendMsgStatus -b ours -s 10 -c 2", "sendStatus=SEND_OK"),
    ("allocateMQ -t T -i 127.0.0.1", r'"queueId":3'),
    ("consumerStatus -g G", "not online"),
    ("exportMetadata -c DefaultCluster -f OUT", "metadata.json success"),
    ("exportConfigs -c DefaultCluster -f OUT", "configs.json success"),
    ("exportMetrics -c DefaultCluster -f OUT", "metrics.json success"),
    ("updateTopicList -b BROKER -f TOPICS", "success"),
    ("topicRoute -t listed", r'"perm":\s*6'),
    ("updateSubGroupList -b BROKER -f GROUPS", "success"),
    ("getConsumerConfig -g listed-g", r"retryMaxTimes\s+=\s+7"),
    ("setConsumeMode -b BROKER -t T -g G -m POP -q 0", "success"),
    ("updateNamesrvConfig -n NAMES -k a -v b", "cannot be changed while it runs"),
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
REFUSED = [
    "updateAclConfig -b BROKER -a abcdefgh -s 12345678",
    "deleteAclConfig -b BROKER -a abcdefgh",
    "clusterAclConfigVersion -b BROKER",
    "updateGlobalWhiteAddr -b BROKER -g 10.0.0.1",
    "getAclConfig -b BROKER",
    "addBroker -c BROKER -b none.conf",
    "removeBroker -c BROKER -b c:b:0",
    "resetMasterFlushOffset -b BROKER -o 0",
    "updateStaticTopic -b ours -t st -qn 4",
    "exportPopRecord -b BROKER",
    "getSyncStateSet -a BROKER -b ours",
    "getBrokerEpoch -b ours",
    "getControllerMetaData -a NAMES",
    "getControllerConfig -a NAMES",
    "updateControllerConfig -a NAMES -k a -v b",
    "electMaster -a NAMES -b 1 -bn ours -c DefaultCluster",
    "cleanBrokerMetadata -a NAMES -bn ours -b 1 -c DefaultCluster",
    "getColdDataFlowCtrInfo -b BROKER",
    "updateColdDataFlowCtrGroupConfig -b BROKER -g G -v 1",
    "removeColdDataFlowCtrGroupConfig -b BROKER -g G",
    "setCommitLogReadAheadMode -b BROKER -m 0",
    "createUser -b BROKER -u u -p p -t Normal",
    "updateUser -b BROKER -u u -p q",
    "getUser -b BROKER -u u",
    "listUser -b BROKER",
    "deleteUser -b BROKER -u u",
    "copyUser -f BROKER -t BROKER -u u",
    "createAcl -b BROKER -s User:u -r Topic:T -a Pub -d Allow",
    "updateAcl -b BROKER -s User:u -r Topic:T -a Pub -d Allow",
    "getAcl -b BROKER -s User:u",
    "listAcl -b BROKER",
    "deleteAcl -b BROKER -s User:u",
    "copyAcl -f BROKER -t BROKER -s User:u",
    "checkRocksdbCqWriteProgress -n NAMES -c DefaultCluster -t T -cf 0",
]
"""What has no meaning here: RocketMQ's code 3, and its remark."""


def commands() -> set[str]:
    return {step.split()[0] for step in (*dict(STEPS), *REFUSED)}


def known_to(version: str, step: str) -> bool:
    """Whether mqadmin of a version has a command, and what it asks about is there."""
    if version.startswith("4"):
        return step.split()[0] not in ONLY_5 and "listed" not in step
    return step.split()[0] not in ONLY_4


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
            sent = [client.send("T", b"body%d" % number, keys=[f"k{number}"]) for number in range(5)][-1]
        topics, groups = tmp_path / "topics.json", tmp_path / "groups.json"
        topics.write_text(json.dumps([{"topicName": "listed", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}]))
        groups.write_text(json.dumps([{"groupName": "listed-g", "retryMaxTimes": 7}]))
        known = {"BROKER": address_of(store), "NAMES": names.address, "OUT": str(tmp_path / "out")}
        known |= {"ID": sent.message_id, "UNIQUE": sent.unique_key, "TOPICS": str(topics), "GROUPS": str(groups)}
        with Mqadmin(version, names.address, tmp_path / "mqadmin") as mqadmin:
            failed: list[str] = []
            for step, expected in [*STEPS, *((step, r"request type \d+ not supported") for step in REFUSED)]:
                if known_to(version, step):
                    words = [known.get(word, word) for word in step.split()]
                    if words[0] == "queryMsgById" and version.startswith("4"):
                        words = words[:3]  # it wants no topic
                    said = mqadmin.run(*words)
                    pattern = expected.replace("BROKER", re.escape(known["BROKER"])).replace("UNIQUE", known["UNIQUE"])
                    if not re.search(pattern, said):
                        failed.append(f"mqadmin {step}\n{said[:1500]}")
            assert not failed, "\n".join(failed)
            listed = set(re.findall(r"^   (\w+)", mqadmin.run(), re.MULTILINE))
            assert listed, "mqadmin has listed no commands"
            assert listed - commands() <= NOT_RUN | NO_REQUEST, "commands that nobody has tried"


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_mqadmin_changes_attributes_of_topics_and_groups(tmp_path: Path) -> None:
    with NamesProcess(tmp_path / "names") as names, store_under(tmp_path / "store", names) as store:
        address = address_of(store)
        names.until_route("TBW102", {"ours": {"0": address}})
        with (
            Mqadmin("5.3.3", names.address, tmp_path / "mqadmin") as mqadmin,
            ClassicClient(int(address.rpartition(":")[2])) as client,
        ):

            def change(attributes: str) -> tuple[bool, dict[str, str], str]:
                """Whether it was taken, the attributes then, and what was said."""
                said = mqadmin.run(*f"updateTopic -b {address} -t kinds -r 2 -w 2 -a {attributes}".split())
                shown = json.loads(client.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "kinds"}).body)
                return "success" in said, shown["attributes"], said

            made = {"message.type": "FIFO", "reserve.time": "24"}
            assert change("+message.type=FIFO,+reserve.time=24")[:2] == (True, made)
            assert change("+reserve.time=48,-message.type")[:2] == (True, {"reserve.time": "48"})
            taken, stays, said = change("+color=red")
            assert (taken, stays) == (False, {"reserve.time": "48"})
            assert "unsupported key: color" in said

            def group_with(words: str) -> dict[str, str]:
                """Attributes of a group after an update."""
                mqadmin.run(*f"updateSubGroup -b {address} -g kinds {words}".split())
                shown = json.loads(client.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "kinds"}).body)
                attributes: dict[str, str] = shown["attributes"]
                return attributes

            body = {"groupName": "kinds", "attributes": {"+priority.factor": "50"}}
            client.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, json.dumps(body).encode())
            assert group_with("-r 3") == {"priority.factor": "50"}, "the tool names no attributes, so they stay"
