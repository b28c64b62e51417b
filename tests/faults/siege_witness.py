"""The good client of a siege: sends and pulls until its standard input ends, then prints what it saw as JSON.

python -m tests.faults.siege_witness ADDRESS CALLS_A_SECOND
"""

import asyncio
import json
import sys
import time
from statistics import quantiles

import grpc
import uvloop

from tandemmq.store.v1 import message_pb2, store_pb2, store_pb2_grpc

DEADLINE = 60.0
TOPIC = "honest"


async def watch(address: str, calls_a_second: int) -> None:
    """Alternates a send with a pull of what was sent."""
    over = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    times: list[float] = []
    failures: list[str] = []
    async with grpc.aio.insecure_channel(address) as channel:
        stub = store_pb2_grpc.StoreStub(channel)
        message = message_pb2.Message(topic=TOPIC, body=bytes(1024), queue_id=0)
        await stub.Send(store_pb2.SendRequest(message=message), timeout=DEADLINE)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not over.done():
            begun = time.perf_counter()
            try:
                if len(times) % 2:
                    await stub.Send(store_pb2.SendRequest(message=message), timeout=DEADLINE)
                else:
                    wanted = store_pb2.PullRequest(topic=TOPIC, queue_id=0, max_messages=32)
                    await stub.Pull(wanted, timeout=DEADLINE)
            except grpc.aio.AioRpcError as error:
                failures.append(f"{error.code().name}: {error.details()}")
            times.append(1000 * (time.perf_counter() - begun))
            await asyncio.sleep(1 / calls_a_second)
    cuts = quantiles(times, n=100) if len(times) > 1 else [0.0] * 99
    found = {"calls": len(times), "failures": len(failures), "first_failure": (failures or [""])[0]}
    milliseconds = {"p50": cuts[49], "p99": cuts[98], "most": max(times, default=0.0)}
    sys.stdout.write(json.dumps(found | {name: round(value, 1) for name, value in milliseconds.items()}))


if __name__ == "__main__":
    uvloop.run(watch(sys.argv[1], int(sys.argv[2])))
