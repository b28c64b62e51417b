"""Read what a topic has from a time on: without a group, and without taking anything from anybody."""

import sys
import time

from tandemmq.client import Outgoing, StoreClient

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8081"

with StoreClient(address) as store:
    store.send_encoded([Outgoing("visits", f"old {number}".encode()) for number in range(3)], queue_id=0)
    time.sleep(0.1)
    since = round(time.time() * 1000)
    store.send_encoded([Outgoing("visits", f"new {number}".encode()) for number in range(3)], queue_id=0)

    for queue in store.offsets("visits", timestamp_ms=since):
        offset = queue.max_offset if queue.at_time is None else queue.at_time
        while offset < queue.max_offset:
            pulled = store.pull("visits", queue.queue_id, offset)
            for record in pulled.records:
                print(record.body.decode())
            offset = pulled.next_offset
