"""A zip file for whoever helps: what admin knows of the cluster. No bodies, no secrets.

Nothing in it is a message's: not its body, not its properties. Of secrets only the paths are there, as settings have
them. What cannot be had is told in problems.json, and the rest comes all the same.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from tandemmq.admin.actions.actions import Actions
from tandemmq.admin.bundle.metrics_pages import NoPage, metrics_address, read_page
from tandemmq.admin.bundle.zip_stream import ZipStream
from tandemmq.admin.catalogue.groups import Groups
from tandemmq.admin.catalogue.topics import Topics
from tandemmq.admin.cluster.cluster import ClusterView
from tandemmq.admin.cluster.configuration import read_configuration
from tandemmq.admin.cluster.nodes import KnownNode, Nodes
from tandemmq.admin.errors import NotPossible
from tandemmq.admin.jobs.jobs import Jobs
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log

log = get_log(__name__)

_PART_BYTES = 256 << 10
_PAGE = 1000
_PAGES_MAX = 20
"""Of topics, and of groups: 20,000 of each."""

_ACTIONS = 1000

_SECRET_NAME = re.compile(r"secret|passw|token|credential", re.IGNORECASE)
_PATH_NAME = re.compile(r"(file|path|directory)$", re.IGNORECASE)

_ABOUT = """TandemMQ support bundle, made {at} by admin {version}.

cluster.json         nodes with roles, offsets, lag, disk and versions
configuration/       settings of each node's services, with defaults and origins; a secret is a path, never its content
metrics/             what each service shows to Prometheus
topics.json          topics with queues; groups.json: groups with lag
jobs.json            audits and rebuilds, with their reports
actions.json         what was done through admin, newest first
problems.json        what could not be had, and why

There are no messages in it: no bodies and no properties.
"""


class Bundle:
    """Collects it."""

    def __init__(
        self, nodes: Nodes, cluster: ClusterView, topics: Topics, groups: Groups, jobs: Jobs, actions: Actions
    ) -> None:
        self._nodes, self._cluster, self._topics, self._groups = nodes, cluster, topics, groups
        self._jobs, self._actions = jobs, actions

    async def parts(self) -> AsyncGenerator[admin_pb2.BundlePart, None]:
        """The bytes of the file, in order; a file of it is made when those before it are sent."""
        at = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        stream, problems = ZipStream(f"tandemmq-{at}"), dict[str, str]()
        about = _ABOUT.format(at=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()), version=version("tandemmq"))
        yield admin_pb2.BundlePart(data=stream.add("README.txt", about.encode()))
        for name, make in self._files(problems):
            try:
                data = await make()
            except TandemError as error:
                problems[name] = error.explain()
                continue
            except Exception as error:  # noqa: BLE001 - whoever asks for help has trouble enough
                log.failure("part of the bundle failed", error, part=name)
                problems[name] = f"{type(error).__name__}: {error}"
                continue
            for part in _pieces(stream.add(name, data)):
                yield part
        yield admin_pb2.BundlePart(data=stream.add("problems.json", _json(problems)) + stream.close())

    def _files(self, problems: dict[str, str]) -> list[tuple[str, Callable[[], Awaitable[bytes]]]]:
        """Names, and what makes each."""
        files: list[tuple[str, Callable[[], Awaitable[bytes]]]] = [("cluster.json", self._cluster_file)]
        for node in self._nodes.all:
            files.append((f"configuration/{node.name}.json", _later(self._configuration, node)))
            files += [
                (f"metrics/{node.name}-{service}.txt", _later(self._metrics, node, service))
                for service in node.address_of
            ]
        files.append(("topics.json", _later(self._topics_file, problems)))
        files.append(("groups.json", _later(self._groups_file, problems)))
        files += [("jobs.json", self._jobs_file), ("actions.json", self._actions_file)]
        return files

    async def _cluster_file(self) -> bytes:
        return _json(_dict(await self._cluster.look()))

    async def _configuration(self, node: KnownNode) -> bytes:
        said = await read_configuration(self._nodes, admin_pb2.GetConfigurationRequest(node=node.name))
        for service in said.services:
            for setting in service.settings:
                if is_secret(setting.name):
                    setting.value = "(not shown)" if setting.value else ""
        return _json(_dict(said))

    async def _metrics(self, node: KnownNode, service: str) -> bytes:
        request = admin_pb2.GetConfigurationRequest(node=node.name, service=service)
        said = await read_configuration(self._nodes, request)
        if not said.services:
            reason = said.missing[0].reason if said.missing else "it does not answer"
            raise NotPossible(f"the {service} does not say where its metrics are: {reason}")
        settings = {one.name: one.value for one in said.services[0].settings}
        try:
            host, port = metrics_address(node.address_of[service], settings)
            return await read_page(host, port, node.timeout, self._nodes.timers)
        except NoPage as error:
            raise NotPossible(str(error)) from error

    async def _topics_file(self, problems: dict[str, str]) -> bytes:
        async def ask(after: str) -> tuple[list[Any], str, int]:
            page = await self._topics.list(admin_pb2.ListTopicsRequest(limit=_PAGE, after=after))
            return list(map(_dict, page.topics)), page.next, page.total

        return _json(await _pages(ask, "topics.json", problems))

    async def _groups_file(self, problems: dict[str, str]) -> bytes:
        async def ask(after: str) -> tuple[list[Any], str, int]:
            page = await self._groups.list(admin_pb2.ListGroupsRequest(limit=_PAGE, after=after))
            return list(map(_dict, page.groups)), page.next, page.total

        return _json(await _pages(ask, "groups.json", problems))

    async def _jobs_file(self) -> bytes:
        jobs = [_dict(self._jobs.get(job.id)) for job in self._jobs.list().jobs]
        for job in jobs:
            job["report"] = json.loads(job.pop("report_json", "null"))
        return _json(jobs)

    async def _actions_file(self) -> bytes:
        actions = await asyncio.to_thread(self._actions.last, _ACTIONS)
        return _json([asdict(one) for one in actions])


def is_secret(setting: str) -> bool:
    """Whether a setting's value is a secret itself, by its name; a path of one is none."""
    return bool(_SECRET_NAME.search(setting)) and not _PATH_NAME.search(setting)


async def _pages(
    ask: Callable[[str], Awaitable[tuple[list[Any], str, int]]], name: str, problems: dict[str, str]
) -> list[Any]:
    """All pages; `ask`: from a name on, gives a page, where the next begins, and how many there are."""
    found: list[Any] = []
    after, total = "", 0
    for _ in range(_PAGES_MAX):
        page, after, total = await ask(after)
        found += page
        if not after:
            return found
    problems[name] = f"only the first {len(found):,} of {total:,}"
    return found


def _later(make: Callable[..., Awaitable[bytes]], *arguments: Any) -> Callable[[], Awaitable[bytes]]:
    return lambda: make(*arguments)


def _pieces(data: bytes) -> list[admin_pb2.BundlePart]:
    return [admin_pb2.BundlePart(data=data[begin : begin + _PART_BYTES]) for begin in range(0, len(data), _PART_BYTES)]


def _dict(message: Message) -> dict[str, Any]:
    return MessageToDict(message, preserving_proto_field_name=True)


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "replace")
