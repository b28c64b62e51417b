"""A steady flow: an official client sends so many bytes a second for so long, and consumes them meanwhile."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc

from tandemmq.common.attributes.group_attributes import KEEP_UNCONSUMED
from tandemmq.delivery.v1.operations_pb2 import CreateGroupRequest
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig
from tests.contract.store_process import StoreProcess
from tests.interop.grpc_clients.programs import command_of

LANGUAGES = ("java", "go")
BYTES = 50_000_000
LARGE = {
    "mapped_file_size_consume_queue": 6_000_000,
    "max_message_size": 4 << 20,
    "max_hash_slot_num": 1_000_000,
    "max_index_num": 4_000_000,
    "prefault_bytes": 4 << 20,
}
SOON = {"file_reserved_time": 0, "delete_when": ";".join(f"{hour:02}" for hour in range(24))}
"""A full file of the log goes in the next pass, if it is consumed: ten minutes would fill 30 GB."""


def flow(language: str, directory: Path, seconds: float, rate: int, file_size: int = 64 << 20) -> str:
    """What the client said. Fails where a send or an acknowledgement failed, or a message did not come.

    `file_size`: of the log's files.
    """
    with StoreProcess(directory, mapped_file_size_commit_log=file_size, **LARGE, **SOON) as store:
        keep_unconsumed(store.address, "flow-group")
        command = [*command_of(f"rocketmq5-{language}"), store.address, "flow", "flow", "flow-group"]
        environment = {**os.environ, "FLOW_SECONDS": str(seconds), "FLOW_BYTES": str(rate)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=3 * seconds + 120, check=False
        )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]
    assert "OK" in done.stdout.splitlines(), done.stdout + done.stderr
    return done.stdout


def keep_unconsumed(address: str, group: str) -> None:
    """Make a group whose messages stay until it has dealt with them, however slow it is."""
    config = SubscriptionGroupConfig(
        name=group, consume_enable=True, retry_max_times=16, retry_queues=1, attributes={KEEP_UNCONSUMED: "true"}
    )
    with grpc.insecure_channel(address) as channel:
        OperationsStub(channel).CreateGroup(CreateGroupRequest(config=config), timeout=60, wait_for_ready=True)


def soak(minutes: float) -> int:
    """Each client in turn; what was found, as exit code."""
    for language in LANGUAGES:
        directory = Path(tempfile.mkdtemp(prefix=f"tandem-flow-{language}-"))
        try:
            said = flow(language, directory / "store", minutes * 60, BYTES, file_size=1 << 30)
        except AssertionError as failure:
            sys.stdout.write(f"{language}, left in {directory}:\n{failure}\n")
            return 1
        shutil.rmtree(directory)
        sys.stdout.write(f"{language}: {said}")
        sys.stdout.flush()
    return 0
