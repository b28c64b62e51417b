"""A slave is promoted, the old master follows it, and begins anew: through admin, with the replicators' own checks."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import replica_log_pb2
from tests.admin_process import AdminProcess, refused
from tests.faults.pair import Pair
from tests.faults.pair_process import until

DEADLINE = 120


def promote(admin: AdminProcess, node: str, **promotion: Any) -> replication_pb2.PromoteResponse:
    """Has admin promote a node."""
    asked = replication_pb2.PromoteRequest(**promotion)
    return admin.stub.PromoteNode(pb.PromoteNodeRequest(node=node, promotion=asked), timeout=DEADLINE)


def follow(admin: AdminProcess, node: str, **whom: str) -> replication_pb2.FollowResponse:
    """Has admin let a node follow another."""
    return admin.stub.FollowMaster(pb.FollowMasterRequest(node=node, **whom), timeout=DEADLINE)


def reseed(admin: AdminProcess, node: str, *, was_a_master: bool = False) -> pb.Job:
    """The job, when it has ended."""
    request = pb.StartJobRequest(kind=pb.RESEED, node=node, was_a_master=was_a_master)
    job = admin.stub.StartJob(request, timeout=DEADLINE)
    return list(admin.stub.WatchJob(pb.GetJobRequest(id=job.id), timeout=DEADLINE))[-1]


@pytest.mark.slow
def test_roles_move_and_a_slave_begins_anew(tmp_path: Path) -> None:
    with (
        Pair(tmp_path) as pair,
        AdminProcess(tmp_path / "admin", {"left": pair.master, "right": pair.slave}, files=True) as admin,
    ):
        with pair.master.client() as client:
            client.send("orders", b"body")
        until(lambda: list(pair.slave.role().group.members), 60, "the slave is told of the master's group")

        # What the command line refuses is refused here, in the same words.
        with refused("FAILED_PRECONDITION", "promote it first"):
            follow(admin, "left", master="right")
        pair.master.kill()
        with refused("FAILED_PRECONDITION", "--old-master-is-gone"):
            promote(admin, "right")

        promoted = promote(admin, "right", old_master_is_gone=True)
        assert promoted.state.identity.role == replica_log_pb2.SYNC_MASTER
        assert any("you said that it is gone" in step for step in promoted.steps)
        until(lambda: admin.node("right").role == pb.MASTER, 60, lambda: str(admin.node("right")))

        # The old master comes back fenced, and follows the new one: by the addresses that admin knows.
        pair.master.start()
        until(lambda: admin.node("left").role == pb.FENCED, 60, lambda: str(admin.node("left")))
        followed = follow(admin, "left", master="right")
        assert followed.state.identity.role == replica_log_pb2.SLAVE
        pair.master, pair.slave = pair.slave, pair.master
        pair.wait_following()

        # Its log is moved aside while its store is stopped, and not before.
        with refused("FAILED_PRECONDITION", "its log is moved aside only while it is stopped"):
            reseed(admin, "left")
        pair.slave.store.stop()
        job = reseed(admin, "left")
        assert (job.state, job.problem) == (pb.SUCCEEDED, ""), list(job.log)
        aside = Path(json.loads(job.report_json)["moved_to"])
        assert (aside / "commitlog").is_dir()
        assert not (pair.slave.root / "commitlog").exists()
        pair.heal()
        told = [(one.method, one.outcome) for one in admin.stub.ListActions(pb.ListActionsRequest()).actions]
        assert told == [
            ("StartJob", "OK"),
            ("StartJob", "FAILED_PRECONDITION"),
            ("FollowMaster", "OK"),
            ("PromoteNode", "OK"),
            ("PromoteNode", "FAILED_PRECONDITION"),
            ("FollowMaster", "FAILED_PRECONDITION"),
        ]

        # A directory that tandem.epoch calls a master's needs one word more.
        pair.master.store.stop()
        job = reseed(admin, "right")
        assert job.state == pb.FAILED
        assert "--yes-it-was-a-master" in job.problem
        job = reseed(admin, "right", was_a_master=True)
        assert (job.state, job.problem) == (pb.SUCCEEDED, ""), list(job.log)


@pytest.mark.slow
def test_a_replaced_master_follows_by_the_command_that_its_problem_names(tmp_path: Path) -> None:
    with (
        Pair(tmp_path) as pair,
        AdminProcess(tmp_path / "admin", {"left": pair.master, "right": pair.slave}, files=True) as admin,
    ):
        with pair.master.client() as client:
            client.send("orders", b"body")
        until(lambda: list(pair.slave.role().group.members), 60, "the slave is told of the master's group")
        pair.master.kill()
        promote(admin, "right", old_master_is_gone=True)
        pair.master.start()

        def command() -> list[str]:
            found = re.search(r"`tandem (replica follow [^`]+)`", " ".join(admin.node("left").problems))
            return [] if found is None else shlex.split(found[1])

        until(command, 60, lambda: str(admin.node("left").problems))
        tandem = [sys.executable, "-m", "tandemmq.cli.main"]
        done = subprocess.run([*tandem, *command()], check=False, capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 0, done.stderr
        pair.master, pair.slave = pair.slave, pair.master
        pair.wait_following()


def test_what_makes_no_sense_is_refused(calm_admin: AdminProcess) -> None:
    with refused("NOT_FOUND", "there is no node 'two': known are one"):
        promote(calm_admin, "two")
    with refused("INVALID_ARGUMENT", "SYNC_MASTER or ASYNC_MASTER"):
        promote(calm_admin, "one", role=replica_log_pb2.SLAVE)
    with refused("INVALID_ARGUMENT", "'nowhere' is no address"):
        promote(calm_admin, "one", other_slaves=["nowhere"])
    with refused("INVALID_ARGUMENT", "cannot follow itself"):
        follow(calm_admin, "one", master="one")
    with refused("INVALID_ARGUMENT", "one of them is enough"):
        follow(calm_admin, "one", master="one", ha_master_address="127.0.0.1:1")
    with refused("INVALID_ARGUMENT", "'nowhere' is no address"):
        follow(calm_admin, "one", ha_master_address="nowhere")
    with refused("FAILED_PRECONDITION", "store of node one runs"):
        reseed(calm_admin, "one")
