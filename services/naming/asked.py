"""Asked: what answers which request code of a name server."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from tandemmq.common.documents import java_json
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.wire.remoting.codes import NO_CONTROLLER, RequestCode, ResponseCode, not_supported
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.fields import Fields
from tandemmq.common.wire.remoting.java_objects import dumps
from tandemmq.common.wire.remoting.registration import (
    BadRegistration,
    BrokerIdentity,
    RegisteredTopic,
    Registration,
    RegistrationVersion,
)
from tandemmq.common.wire.remoting.versions import V4_9_4
from tandemmq.naming.bodies import cluster_body, in_zone, member_body, route_body, topics_body
from tandemmq.naming.broker import TopicQueues
from tandemmq.naming.kv import ORDER_TOPICS, KvStore, UnknownValue
from tandemmq.naming.measured import PlainHandler
from tandemmq.naming.routes import RouteTable, queues_of

UNIT, UNIT_SUBSCRIBED = 1, 2
"""Bits of a topic's sys flag."""

_OF_CONTROLLERS = (
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
    RequestCode.CONTROLLER_ELECT_MASTER,
    RequestCode.CONTROLLER_REGISTER_BROKER,
    RequestCode.CONTROLLER_GET_REPLICA_INFO,
    RequestCode.CONTROLLER_GET_METADATA_INFO,
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,
    RequestCode.UPDATE_CONTROLLER_CONFIG,
    RequestCode.GET_CONTROLLER_CONFIG,
    RequestCode.CLEAN_BROKER_DATA,
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID,
    RequestCode.CONTROLLER_APPLY_BROKER_ID,
)


class NoRoute(TandemError):
    """No broker that is there has the topic."""

    kind = Kind.UNKNOWN_TOPIC


class NotChangeable(TandemError):
    """A setting cannot be changed while the name server runs."""

    kind = Kind.UNSUPPORTED
    remedy = "change the name server's settings where it is started, and start it again"


class NamingRules(NamedTuple):
    """The part of the settings that answers depend on."""

    order_in_routes: bool = False
    order_to_brokers: bool = True


def code_of(error: TandemError) -> int:
    """The response code of an error: clients tell these three apart."""
    if isinstance(error, NoRoute):
        return ResponseCode.TOPIC_NOT_EXIST
    return ResponseCode.QUERY_NOT_FOUND if isinstance(error, UnknownValue) else ResponseCode.SYSTEM_ERROR


class Asked:
    """Answers from the table of routes and the values."""

    def __init__(
        self,
        routes: RouteTable,
        values: KvStore,
        now: Callable[[], float],
        rules: NamingRules,
        properties: Callable[[], str],
    ) -> None:
        """`now`: a steady clock, in seconds; `properties`: the settings, as text."""
        self._routes = routes
        self._values = values
        self._now = now
        self._rules = rules
        self._properties = properties

    def handlers(self) -> dict[int, PlainHandler]:
        """The table."""
        code = RequestCode
        return {
            code.REGISTER_BROKER: self._register,
            code.UNREGISTER_BROKER: self._unregister,
            code.BROKER_HEARTBEAT: self._heartbeat,
            code.QUERY_DATA_VERSION: self._data_version,
            code.GET_ROUTEINFO_BY_TOPIC: self._route,
            code.GET_BROKER_CLUSTER_INFO: self._clusters,
            code.GET_BROKER_MEMBER_GROUP: self._members,
            code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self._topics,
            code.GET_TOPICS_BY_CLUSTER: self._topics_of_cluster,
            code.GET_SYSTEM_TOPIC_LIST_FROM_NS: self._system_topics,
            code.GET_UNIT_TOPIC_LIST: self._unit_topics,
            code.GET_HAS_UNIT_SUB_TOPIC_LIST: self._unit_topics,
            code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self._unit_topics,
            code.DELETE_TOPIC_IN_NAMESRV: self._delete_topic,
            code.REGISTER_TOPIC_IN_NAMESRV: self._add_topic,
            code.WIPE_WRITE_PERM_OF_BROKER: self._wipe,
            code.ADD_WRITE_PERM_OF_BROKER: self._add_write,
            code.PUT_KV_CONFIG: self._put,
            code.GET_KV_CONFIG: self._get,
            code.DELETE_KV_CONFIG: self._delete,
            code.GET_KVLIST_BY_NAMESPACE: self._values_of,
            code.GET_NAMESRV_CONFIG: self._config,
            code.UPDATE_NAMESRV_CONFIG: self._update_config,
            **dict.fromkeys(_OF_CONTROLLERS, self._no_controller),
        }

    # -- brokers ------------------------------------------------------------------------------------------------------

    def _register(self, connection: RemotingConnection, request: Command) -> Command:
        found = self._routes.register(Registration.from_command(request), connection, self._now())
        fields: dict[str, str] = {}
        if found.master_address is not None:
            fields = {"masterAddr": found.master_address, "haServerAddr": found.ha_address or ""}
        body = b""
        if self._rules.order_to_brokers:
            with suppress(UnknownValue):
                body = dumps({"table": self._values.of(ORDER_TOPICS)})
        return request.answer(ResponseCode.SUCCESS, fields, body)

    def _unregister(self, _: RemotingConnection, request: Command) -> Command:
        self._routes.unregister(_who(request))
        return request.answer()

    def _heartbeat(self, _: RemotingConnection, request: Command) -> Command:
        fields = Fields(request.fields)
        name, address = fields.text("brokerName"), fields.text("brokerAddr")
        self._routes.heard(BrokerIdentity(fields.text("clusterName"), name, 0, address), self._now())
        return request.answer()

    def _data_version(self, _: RemotingConnection, request: Command) -> Command:
        asked = RegistrationVersion.from_json(_object(request))
        known = self._routes.heard(_who(request), self._now())
        changed = "false" if known == asked else "true"
        return request.answer(
            ResponseCode.SUCCESS, {"changed": changed}, b"" if known is None else dumps(known.to_json())
        )

    # -- routes -------------------------------------------------------------------------------------------------------

    def _route(self, _: RemotingConnection, request: Command) -> Command:
        fields = Fields(request.fields)
        topic = fields.text("topic")
        brokers, queues = self._routes.route(topic)
        zone = fields.text_or("__ZONE_NAME", None) if fields.flag_or("__ZONE_MODE", False) else None
        if zone is not None:
            brokers = in_zone(brokers, zone)
            queues = {broker.name: queues[broker.name] for broker in brokers}
        if not brokers:
            raise NoRoute(f"No topic route info in name server for the topic: {topic}")
        standard = request.version >= V4_9_4 or fields.flag_or("acceptStandardJsonOnly", False)
        order = self._values.order_of(topic) if self._rules.order_in_routes else None
        return request.answer(body=route_body(brokers, queues, standard=standard, order=order))

    def _clusters(self, _: RemotingConnection, request: Command) -> Command:
        return request.answer(body=cluster_body(self._routes.brokers, self._routes.clusters()))

    def _members(self, _: RemotingConnection, request: Command) -> Command:
        broker = self._routes.brokers.get(Fields(request.fields).text("brokerName"))
        return request.answer(body=member_body(broker))

    def _topics(self, _: RemotingConnection, request: Command) -> Command:
        return request.answer(body=topics_body(self._routes.topics))

    def _topics_of_cluster(self, _: RemotingConnection, request: Command) -> Command:
        cluster = Fields(request.fields).text("cluster")
        return request.answer(body=topics_body(self._routes.topics_of_cluster(cluster)))

    def _system_topics(self, _: RemotingConnection, request: Command) -> Command:
        """Names of clusters and brokers, which are topics too; and some broker, to be asked for its own."""
        clusters = self._routes.clusters()
        names = [name for cluster, brokers in clusters.items() for name in (cluster, *brokers)]
        addresses = [address for one in self._routes.brokers.values() for address in one.addresses.values()]
        return request.answer(body=topics_body(names, addresses[0] if addresses else None))

    def _unit_topics(self, _: RemotingConnection, request: Command) -> Command:
        wanted = {
            RequestCode.GET_UNIT_TOPIC_LIST: _is_unit,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _has_unit_subscriptions,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: lambda one: (
                not _is_unit(one) and _has_unit_subscriptions(one)
            ),
        }[RequestCode(request.code)]
        found = [name for name, queues in self._routes.topics.items() if any(map(wanted, queues.values()))]
        return request.answer(body=topics_body(found))

    def _delete_topic(self, _: RemotingConnection, request: Command) -> Command:
        fields = Fields(request.fields)
        self._routes.delete_topic(fields.text("topic"), fields.text_or("clusterName", None))
        return request.answer()

    def _add_topic(self, _: RemotingConnection, request: Command) -> Command:
        topic, said = Fields(request.fields).text("topic"), _object(request).get("queueDatas") or []
        if not isinstance(said, list) or not all(isinstance(one, dict) for one in said):
            raise BadRegistration("queueDatas is no list of objects")
        self._routes.add_queues(
            topic, ((str(one.get("brokerName")), queues_of(RegisteredTopic.from_json(topic, one))) for one in said)
        )
        return request.answer()

    def _wipe(self, _: RemotingConnection, request: Command) -> Command:
        count = self._routes.set_writable(Fields(request.fields).text("brokerName"), writable=False)
        return request.answer(fields={"wipeTopicCount": str(count)})

    def _add_write(self, _: RemotingConnection, request: Command) -> Command:
        count = self._routes.set_writable(Fields(request.fields).text("brokerName"), writable=True)
        return request.answer(fields={"addTopicCount": str(count)})

    # -- values and settings ------------------------------------------------------------------------------------------

    def _put(self, _: RemotingConnection, request: Command) -> Command:
        fields = Fields(request.fields)
        self._values.put(fields.text("namespace"), fields.text("key"), fields.text("value"))
        return request.answer()

    def _get(self, _: RemotingConnection, request: Command) -> Command:
        fields = Fields(request.fields)
        return request.answer(fields={"value": self._values.get(fields.text("namespace"), fields.text("key"))})

    def _delete(self, _: RemotingConnection, request: Command) -> Command:
        fields = Fields(request.fields)
        self._values.delete(fields.text("namespace"), fields.text("key"))
        return request.answer()

    def _values_of(self, _: RemotingConnection, request: Command) -> Command:
        found = self._values.of(Fields(request.fields).text("namespace"))
        return request.answer(body=dumps({"table": found}))

    def _config(self, _: RemotingConnection, request: Command) -> Command:
        return request.answer(body=self._properties().encode())

    def _update_config(self, _: RemotingConnection, request: Command) -> Command:
        raise NotChangeable("settings of this name server cannot be changed while it runs")

    def _no_controller(self, _: RemotingConnection, request: Command) -> Command:
        said = not_supported(request.code, NO_CONTROLLER)
        return request.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=said)


def _who(request: Command) -> BrokerIdentity:
    return BrokerIdentity.from_fields(Fields(request.fields))


def _object(request: Command) -> Mapping[str, Any]:
    """The body. Raises BadRegistration."""
    if not request.body:
        return {}
    try:
        return java_json.loads(bytes(request.body))
    except ValueError as error:
        raise BadRegistration(f"the body is no JSON object: {error}") from None


def _is_unit(queues: TopicQueues) -> bool:
    return bool(queues.sys_flag & UNIT)


def _has_unit_subscriptions(queues: TopicQueues) -> bool:
    return bool(queues.sys_flag & UNIT_SUBSCRIBED)


def as_properties(values: Iterable[tuple[str, str]]) -> str:
    """Settings as the text of a Java properties file, as tools show it."""
    return "".join(f"{name}={value}\n" for name, value in values)
