"""Spark over a log: queries, rebuilds of queues and index, its start-up, its memory, and what a task costs.

Every contestant that stays warm is a process of its own, told when it is its turn: one without Spark, and one for each
session. The log is in the page cache, but for the cases called cold.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.context import Context
from bench.conversation import Conversation
from bench.memory import SparkMemory
from bench.model import Case, Contestant, Sample, Unavailable
from bench.page_cache import forget
from bench.process import environment
from bench.saved import keep, restore

READ, READ_TWO, WALK = "bare read", "bare read, 2 threads", "walk alone"
SEQUENTIAL, OPENING, IN_PROCESS = "sequential", "store that starts", "tasks in process"
ONE, TWO = "local[1]", "local[2]"
START = TWO
PREPARED = "local[2], prepared classes"
LOGS = {"1k": (1158, "records of 1.1 KiB"), "290": (290, "records of 290 B")}
"""Bytes of a record; the first are messages of 1 KiB."""
TASKS = (2, 8, 32, 128)
DRIVER = ((64, 16), (1024, 16), (1024, 512))
"""Ranges, and queues that each of them has messages of."""
PART_SHARES = (1, 16)
_FULL_MEGABYTES, _QUICK_MEGABYTES = 4096, 1024
_FULL_KEYS, _QUICK_KEYS = 16_000_000, 4_000_000
_ROOM_FOR = 3.0
"""Free disk, in sizes of the log: log, staging directory, what a starting store writes."""
_KINDS = (("queues", True, False), ("index", False, True), ("both", True, True))
_QUERIES = (("count", "count"), ("topics", "bytes by topic"), ("key", "search for a key"))
_ROUNDS_OF_SLOW = 3


def spark(context: Context) -> None:
    """All cases; each log is written, measured and removed before the next one."""
    _check_spark()
    megabytes = _QUICK_MEGABYTES if context.quick else _FULL_MEGABYTES
    with _caches(context):
        for size in LOGS:
            names = [f"{case}-{size}" for case in ("scan", "rows", "queues", "index", "both", "cold")]
            names += ["start"] if size == "1k" else ["memory"]
            if any(context.wants(f"spark.{name}") for name in names):
                with _log(context, size, megabytes) as log:
                    _of_log(context, log)
        if context.wants("spark.tasks"):
            _tasks(context)
        if context.wants("spark.driver") or context.wants("spark.part"):
            _pieces(context)


def _check_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise Unavailable("spark: PySpark is not installed: pip install 'tandemmq[spark]'")
    from tandemmq.spark.running.java import JavaNotFound, find_java

    try:
        find_java()
    except JavaNotFound as error:
        raise Unavailable(f"spark: {error.explain()}") from error


@contextmanager
def _caches(context: Context) -> Iterator[None]:
    """What Spark prepares for a user is not there, but where a case says so (`PREPARED`)."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(context.fresh("spark-cache"))
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before


class _Log:
    """A log to measure with, and where contestants write."""

    def __init__(self, size: str, directory: Path, made: dict[str, int]) -> None:
        self.size = size
        self.title = LOGS[size][1]
        self.directory = directory
        self.root, self.saved = directory / "store", directory / "saved"
        self.end, self.messages = made["end"], made["messages"]

    @property
    def files(self) -> list[Path]:
        """The log's own."""
        return sorted((self.root / "commitlog").iterdir())

    @property
    def query(self) -> dict[str, Any]:
        """What a query is asked with."""
        return {"root": str(self.root), "end": self.end, "messages": self.messages}


@contextmanager
def _log(context: Context, size: str, megabytes: int) -> Iterator[_Log]:
    free = shutil.disk_usage(context.directory).free >> 20
    if free < _ROOM_FOR * megabytes:
        raise Unavailable(
            f"spark: {free:,} MiB are free, {_ROOM_FOR * megabytes:,.0f} are needed: use --directory, or --quick"
        )
    directory = context.fresh(f"spark-{size}")
    try:
        context.say(f"  writing {megabytes} MiB of log, {LOGS[size][1]}")
        made = json.loads(context.worker("spark-log", str(directory / "store"), str(megabytes), str(LOGS[size][0])))
        log = _Log(size, directory, made)
        keep(log.root, log.saved)
        yield log
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _talking(directory: Path, masters: Sequence[str], kind: str) -> Iterator[dict[str, Conversation]]:
    """A process without Spark, by the name `SEQUENTIAL`, and one with a warm session for each master."""
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        plain = Conversation(["spark-plain", str(directory / "plain")], directory / "plain.log")
        talking = {SEQUENTIAL: stack.enter_context(plain)}
        for master in masters:
            talking[master] = stack.enter_context(_session(directory, master, kind))
            talking[master].ask("open")
            talking[master].ask("empty", tasks=8)
        yield talking


def _session(directory: Path, master: str, kind: str, **variables: str) -> Conversation:
    place = directory / f"{kind}-{master[-2]}"
    return Conversation(["spark-session", master, str(place), kind], directory / f"{place.name}.log", **variables)


# -- on a log ---------------------------------------------------------------------------------------------------------


def _of_log(context: Context, log: _Log) -> None:
    size = log.size
    if any(context.wants(f"spark.{name}-{size}") for name in ("scan", "rows")):
        with _talking(log.directory / "queries", (ONE, TWO), "rows") as talking:
            context.run(_query_cases(talking, log))
    if any(context.wants(f"spark.{name}-{size}") for name in ("queues", "index", "both", "cold")):
        with _talking(log.directory / "rebuilds", (ONE, TWO), "jobs") as talking:
            for conversation in (talking[ONE], talking[TWO]):  # loads what tasks need
                conversation.ask("rebuild", root=str(log.root), messages=log.messages, queues=True, index=True)
            context.run([*_rebuild_cases(context, talking, log), _cold_case(talking, log)])
    if size == "1k" and context.wants("spark.start"):
        _start(context, log)
    if size == "290" and context.wants("spark.memory"):
        _memory(context, log)


def _query_cases(talking: dict[str, Conversation], log: _Log) -> list[Case]:
    plain = talking[SEQUENTIAL]
    bare = [
        Contestant(READ, partial(_ask, log, plain, "read", root=str(log.root), end=log.end, threads=1)),
        Contestant(READ_TWO, partial(_ask, log, plain, "read", root=str(log.root), end=log.end, threads=2)),
        Contestant(WALK, partial(_ask, log, plain, "walk", **log.query)),
    ]
    queries = [
        Contestant(f"{title}, {master}", partial(_ask, log, talking[master], query, **log.query))
        for query, title in _QUERIES
        for master in (ONE, TWO)
    ]
    rows = [Contestant(master, partial(_ask, log, talking[master], "all", **log.query)) for master in (ONE, TWO)]
    title = "All columns of all messages through Spark"
    return [
        Case(f"spark.scan-{log.size}", f"Reading the log, {log.title}", "gb_s", [*bare, *queries]),
        Case(f"spark.rows-{log.size}", f"{title}, {log.title}", "gb_s", rows, rounds=_ROUNDS_OF_SLOW),
    ]


def _rebuild_cases(context: Context, talking: dict[str, Conversation], log: _Log) -> list[Case]:
    cases = []
    for kind, queues, index in _KINDS:
        what = {"root": str(log.root), "queues": queues, "index": index}
        plain = talking[SEQUENTIAL]
        contestants = [
            Contestant(READ, partial(_ask, log, plain, "read", root=str(log.root), end=log.end, threads=1)),
            Contestant(SEQUENTIAL, partial(_ask, log, plain, "sequential", end=log.end, **what)),
            Contestant(IN_PROCESS, partial(_ask, log, plain, "in process", messages=log.messages, **what)),
        ]
        contestants += [
            Contestant(master, partial(_ask, log, talking[master], "rebuild", messages=log.messages, **what))
            for master in (ONE, TWO)
        ]
        if kind == "both":
            contestants.append(Contestant(OPENING, partial(_opening, context, log)))
        title = {"both": "queues and index"}.get(kind, kind)
        cases.append(Case(f"spark.{kind}-{log.size}", f"Rebuild of {title}, {log.title}", "gb_s", contestants))
    return cases


def _cold_case(talking: dict[str, Conversation], log: _Log) -> Case:
    """From the disk: what is in memory is forgotten before."""
    plain, root = talking[SEQUENTIAL], str(log.root)
    both = {"root": root, "queues": True, "index": True}
    contestants = [
        Contestant(READ, partial(_cold, log, plain, "read", root=root, end=log.end, threads=1)),
        Contestant(READ_TWO, partial(_cold, log, plain, "read", root=root, end=log.end, threads=2)),
        Contestant(SEQUENTIAL, partial(_cold, log, plain, "sequential", end=log.end, **both)),
    ]
    contestants += [
        Contestant(master, partial(_cold, log, talking[master], "rebuild", messages=log.messages, **both))
        for master in (ONE, TWO)
    ]
    contestants.append(Contestant(f"count, {TWO}", partial(_cold, log, talking[TWO], "count", **log.query)))
    title = f"Rebuild of queues and index from a cold disk, {log.title}"
    return Case(f"spark.cold-{log.size}", title, "gb_s", contestants, rounds=_ROUNDS_OF_SLOW)


def _ask(log: _Log, conversation: Conversation, what: str, **arguments: Any) -> Sample:
    os.sync()  # what others have written is not this one's to wait for
    answer: Sample = conversation.measure(what, **arguments)
    return {**answer, "cpu_s_gb": answer["cpu_s"] / (log.end / 1e9)}


def _cold(log: _Log, conversation: Conversation, what: str, **arguments: Any) -> Sample:
    os.sync()
    forget(log.files)
    return _ask(log, conversation, what, **arguments)


def _opening(context: Context, log: _Log) -> Sample:
    """The real thing: a store that opens after a crash, in a fresh process."""
    os.sync()
    try:
        sample: Sample = json.loads(context.worker("recover", str(log.root)))
    finally:
        restore(log.root, log.saved)
    if sample["units"] != log.messages:
        raise Unavailable(f"the store has {sample['units']:,.0f} units, the log {log.messages:,} messages")
    gigabytes = log.end / 1e9
    return {**sample, "m_msg_s": log.messages / sample["seconds"] / 1e6, "cpu_s_gb": sample["cpu_s"] / gigabytes}


# -- start-up and memory ----------------------------------------------------------------------------------------------


def _start(context: Context, log: _Log) -> None:
    """A process that opens a session, runs a task, and rebuilds twice: how long until each is done."""
    prepared = log.directory / "prepared"
    contestants = [Contestant(master, partial(_started, log, master)) for master in (ONE, TWO)]
    if _prepare(prepared):
        contestants.append(Contestant(PREPARED, partial(_started, log, TWO, XDG_CACHE_HOME=str(prepared))))
    title = f"Start of Spark and first rebuild of queues and index, {log.title}"
    context.run([Case("spark.start", title, "overhead_s", contestants, rounds=_ROUNDS_OF_SLOW)])


def _prepare(cache: Path) -> bool:
    """Make the archive of Spark's classes in a cache of its own; False if that fails."""
    command = [sys.executable, "-m", "tandemmq.spark.running.class_archive"]
    done = subprocess.run(
        command, env=environment(XDG_CACHE_HOME=str(cache)), capture_output=True, timeout=600, check=False
    )
    return done.returncode == 0 and any(cache.rglob("*.jsa"))


def _started(log: _Log, master: str, **variables: str) -> Sample:
    os.sync()
    directory = log.directory / "starting"
    directory.mkdir(exist_ok=True)
    what: dict[str, Any] = {"root": str(log.root), "messages": log.messages, "queues": True, "index": True}
    try:
        with _session(directory, master, "jobs", **variables) as conversation:
            conversation.ask("open")
            session = time.perf_counter() - conversation.begun
            task = conversation.ask("first task")["seconds"]
            first = conversation.ask("rebuild", **what)
            warm = conversation.ask("rebuild", **what)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return {
        "overhead_s": session + task + first["seconds"] - warm["seconds"],
        "session_s": session,
        "task_s": task,
        "first_s": first["seconds"],
        "warm_s": warm["seconds"],
        "gb_s": first["gb_s"],
    }


def _memory(context: Context, log: _Log) -> None:
    """Small records are the worst: most keys and units a byte. Nothing is timed, as looking at memory takes time."""
    rebuild = {"root": str(log.root), "messages": log.messages, "queues": True, "index": True}
    asked: list[tuple[str, str, str, dict[str, Any]]] = [
        ("rebuild", "jobs", "rebuild", rebuild),
        ("count", "rows", "count", log.query),
        ("all columns", "rows", "all", log.query),
    ]
    contestants = [
        Contestant(f"{title}, {TWO}", partial(_watched, log, kind, what, arguments))
        for title, kind, what, arguments in asked
    ]
    context.run([Case("spark.memory", f"Most anonymous memory, {log.title}", "worker_mb", contestants, rounds=2)])


def _watched(log: _Log, kind: str, what: str, arguments: dict[str, Any]) -> Sample:
    directory = log.directory / "watched"
    directory.mkdir(exist_ok=True)
    try:
        with _session(directory, TWO, kind) as conversation:
            conversation.ask("open")
            conversation.ask("empty", tasks=8)
            with SparkMemory(conversation.pid) as idle:
                pass
            with SparkMemory(conversation.pid) as seen:
                conversation.ask(what, **arguments)
                conversation.ask(what, **arguments)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return {**seen.sample, "idle_mb": idle.sample.get("worker_mb", 0.0)}


# -- what a task costs, and the driver --------------------------------------------------------------------------------


def _tasks(context: Context) -> None:
    """Jobs of tasks that do nothing."""
    with _talking(context.fresh("spark-tasks"), (ONE, TWO), "jobs") as talking:
        for master in (ONE, TWO):
            talking[master].ask("empty", tasks=max(TASKS))
        contestants = [
            Contestant(tasks_name(tasks, master), partial(talking[master].measure, "empty", tasks=tasks))
            for tasks in TASKS
            for master in (ONE, TWO)
        ]
        context.run([Case("spark.tasks", "A job of tasks that do nothing", "seconds", contestants)])


def _pieces(context: Context) -> None:
    """Pieces of a rebuild alone: what the driver does with the findings of ranges; one part of an index file."""
    keys = _QUICK_KEYS if context.quick else _FULL_KEYS
    with _talking(context.fresh("spark-pieces"), (), "jobs") as talking:
        plain = talking[SEQUENTIAL]
        driver = [
            Contestant(driver_name(*shape), partial(plain.measure, "driver", ranges=shape[0], queues=shape[1]))
            for shape in DRIVER
        ]
        parts = [
            Contestant(part_name(share), partial(plain.measure, "part", keys=keys, share=share))
            for share in PART_SHARES
        ]
        context.run(
            [
                Case("spark.driver", "The driver's share: joining what ranges have found", "us_a_range", driver),
                Case("spark.part", f"A part of an index file of {keys:,} keys", "ns_a_key", parts),
            ]
        )


def tasks_name(tasks: int, master: str) -> str:
    """A contestant of `spark.tasks`."""
    return f"{tasks} tasks, {master}"


def driver_name(ranges: int, queues: int) -> str:
    """A contestant of `spark.driver`."""
    return f"{ranges} ranges, {queues} queues"


def part_name(share: int) -> str:
    """A contestant of `spark.part`."""
    return "all slots" if share == 1 else f"1/{share} of the slots"
