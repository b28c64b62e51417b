"""A worker for asyncio: eight messages at a time, and an end in order at Ctrl-C or SIGTERM."""

import asyncio
import signal
import sys

from tandemmq.client import DeadLetter, Retry, aio

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8081"


async def handle(message: aio.Message) -> None:
    if not message.body:
        raise DeadLetter("there is nothing to do")
    if message.tag == "later" and message.delivery_number == 1:
        raise Retry(after=1)
    print(f"done {message.body.decode()}", flush=True)


async def main() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    counts = await aio.worker(handle, address, group="workers", topic="jobs", concurrency=8, stop=stop)
    print(counts)


asyncio.run(main())
