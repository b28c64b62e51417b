"""Unserved: requests that have no meaning here, refused by name and with what to do instead.

The code is RocketMQ's 3 (REQUEST_CODE_NOT_SUPPORTED), by which clients and tools know that a broker lacks something.
The remark begins as RocketMQ's and goes on with the reason.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tandemmq.common.wire.remoting.codes import NO_CONTROLLER, RequestCode, ResponseCode, not_supported
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall

_BITMAPS = "receipts of this broker are acknowledged one by one (ACK_MESSAGE); set enableBatchAck=false in the proxy"
_PROXIES = "this broker serves version 5 clients itself, without a proxy that asks this"
_NO_CLIENT = "no client of RocketMQ sends it"
_USERS = "users and their rights are in the access file; see tandem user"
_STATIC = "there are no static topics; give the topic to each broker"
_MEMBERS = "replicas are the replicator's business; see tandem replica list"
_COLD = "there is no cold data: the kernel's page cache decides what is in memory"
_ROCKSDB = "there is no RocksDB here: tables are JSON in config/"
_FILTERS = "there are no filter servers; use SQL-92"
_GIVEN_UP = "a half message that was given up is in TRANS_CHECK_MAX_TIME_TOPIC, and stays there"
_NAMES = "name servers are asked that; ask the one at which this broker is registered (namesrvAddr)"
_CLIENTS = "a broker asks clients that, and not the other way"
_NOBODY = "RocketMQ has a number for it and no broker that serves it"
_SUSPENDED = f"{_NOBODY}; a group stops with consumeEnable=false (mqadmin updateSubGroup -s false)"

REASONS: Mapping[RequestCode, str] = MappingProxyType(
    {
        RequestCode.BATCH_ACK_MESSAGE: _BITMAPS,
        RequestCode.PEEK_MESSAGE: f"{_NO_CLIENT}; PULL_MESSAGE reads without giving out",
        RequestCode.NOTIFICATION: _PROXIES,
        RequestCode.POLLING_INFO: f"{_NO_CLIENT}; see tandem group members",
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: _USERS,
        RequestCode.DELETE_ACL_CONFIG: _USERS,
        RequestCode.GET_BROKER_CLUSTER_ACL_INFO: _USERS,
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _USERS,
        RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: _USERS,
        RequestCode.AUTH_CREATE_USER: _USERS,
        RequestCode.AUTH_UPDATE_USER: _USERS,
        RequestCode.AUTH_DELETE_USER: _USERS,
        RequestCode.AUTH_GET_USER: _USERS,
        RequestCode.AUTH_LIST_USER: _USERS,
        RequestCode.AUTH_CREATE_ACL: _USERS,
        RequestCode.AUTH_UPDATE_ACL: _USERS,
        RequestCode.AUTH_DELETE_ACL: _USERS,
        RequestCode.AUTH_GET_ACL: _USERS,
        RequestCode.AUTH_LIST_ACL: _USERS,
        RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: _USERS,
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: _STATIC,
        RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: NO_CONTROLLER,
        RequestCode.GET_BROKER_EPOCH_CACHE: NO_CONTROLLER,
        RequestCode.NOTIFY_BROKER_ROLE_CHANGED: NO_CONTROLLER,
        RequestCode.ADD_BROKER: "this is no container of brokers; each is a process of its own",
        RequestCode.REMOVE_BROKER: "this is no container of brokers; each is a process of its own",
        RequestCode.EXCHANGE_BROKER_HA_INFO: _MEMBERS,
        RequestCode.RESET_MASTER_FLUSH_OFFSET: "a slave finds its master's offset by itself",
        RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
        RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _COLD,
        RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: _COLD,
        RequestCode.SET_COMMITLOG_READ_MODE: _COLD,
        RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _ROCKSDB,
        RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON: _ROCKSDB,
        RequestCode.POP_ROLLBACK: "what pop holds is in the journal; see tandem group progress",
        RequestCode.REGISTER_FILTER_SERVER: _FILTERS,
        RequestCode.REGISTER_MESSAGE_FILTER_CLASS: _FILTERS,
        RequestCode.RESUME_CHECK_HALF_MESSAGE: _GIVEN_UP,
        RequestCode.QUERY_BROKER_OFFSET: f"{_NOBODY}; GET_BROKER_RUNTIME_INFO says where the log ends",
        RequestCode.GET_TOPIC_CONFIG_LIST: f"{_NOBODY}; GET_ALL_TOPIC_CONFIG lists topics",
        RequestCode.GET_TOPIC_NAME_LIST: f"{_NOBODY}; GET_ALL_TOPIC_CONFIG lists topics",
        RequestCode.TRIGGER_DELETE_FILES: f"{_NOBODY}; files go by themselves when they expire",
        RequestCode.GET_CLIENT_CONFIG: f"{_NOBODY}; GET_CONSUMER_RUNNING_INFO says how a consumer is set",
        RequestCode.SUSPEND_CONSUMER: _SUSPENDED,
        RequestCode.RESUME_CONSUMER: _SUSPENDED,
        RequestCode.RESET_CONSUMER_OFFSET_IN_CONSUMER: f"{_NOBODY}; INVOKE_BROKER_TO_RESET_OFFSET sets positions",
        RequestCode.RESET_CONSUMER_OFFSET_IN_BROKER: f"{_NOBODY}; INVOKE_BROKER_TO_RESET_OFFSET sets positions",
        RequestCode.ADJUST_CONSUMER_THREAD_POOL: f"{_NOBODY}; a consumer sets its own threads",
        RequestCode.WHO_CONSUME_THE_MESSAGE: f"{_NOBODY}; see tandem message find, and tandem message trace",
        RequestCode.QUERY_CORRECTION_OFFSET: "offsets are corrected by tandem group reset",
        RequestCode.PUT_KV_CONFIG: _NAMES,
        RequestCode.GET_KV_CONFIG: _NAMES,
        RequestCode.DELETE_KV_CONFIG: _NAMES,
        RequestCode.REGISTER_BROKER: _NAMES,
        RequestCode.UNREGISTER_BROKER: _NAMES,
        RequestCode.GET_ROUTEINFO_BY_TOPIC: _NAMES,
        RequestCode.GET_BROKER_CLUSTER_INFO: _NAMES,
        RequestCode.WIPE_WRITE_PERM_OF_BROKER: _NAMES,
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _NAMES,
        RequestCode.DELETE_TOPIC_IN_NAMESRV: _NAMES,
        RequestCode.REGISTER_TOPIC_IN_NAMESRV: _NAMES,
        RequestCode.GET_KVLIST_BY_NAMESPACE: _NAMES,
        RequestCode.GET_TOPICS_BY_CLUSTER: _NAMES,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: _NAMES,
        RequestCode.UPDATE_NAMESRV_CONFIG: _NAMES,
        RequestCode.GET_NAMESRV_CONFIG: _NAMES,
        RequestCode.QUERY_DATA_VERSION: _NAMES,
        RequestCode.ADD_WRITE_PERM_OF_BROKER: _NAMES,
        RequestCode.GET_BROKER_MEMBER_GROUP: _NAMES,
        RequestCode.BROKER_HEARTBEAT: _NAMES,
        RequestCode.GET_UNIT_TOPIC_LIST: _NAMES,
        RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _NAMES,
        RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _NAMES,
        RequestCode.CHECK_TRANSACTION_STATE: _CLIENTS,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: _CLIENTS,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET: _CLIENTS,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: _CLIENTS,
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: _CLIENTS,
        RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: NO_CONTROLLER,
        RequestCode.CONTROLLER_ELECT_MASTER: NO_CONTROLLER,
        RequestCode.CONTROLLER_REGISTER_BROKER: NO_CONTROLLER,
        RequestCode.CONTROLLER_GET_REPLICA_INFO: NO_CONTROLLER,
        RequestCode.CONTROLLER_GET_METADATA_INFO: NO_CONTROLLER,
        RequestCode.UPDATE_CONTROLLER_CONFIG: NO_CONTROLLER,
        RequestCode.GET_CONTROLLER_CONFIG: NO_CONTROLLER,
        RequestCode.CLEAN_BROKER_DATA: NO_CONTROLLER,
        RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: NO_CONTROLLER,
        RequestCode.CONTROLLER_APPLY_BROKER_ID: NO_CONTROLLER,
        RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: f"name servers of RocketMQ 5 send it, one way; {_MEMBERS}",
    }
)
"""Why, and what to do."""


def unserved() -> dict[int, Handler]:
    """Handlers that refuse, by request code."""
    return {code: _refusing(reason) for code, reason in REASONS.items()}


def _refusing(reason: str) -> Callable[[RemotingCall], Command]:
    def refuse(call: RemotingCall) -> Command:
        return call.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, not_supported(call.command.code, reason))

    return refuse
