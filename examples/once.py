"""Do a thing once, although its message may come twice: the message's key and the result go into one transaction."""

import sqlite3
import sys
from itertools import islice

from tandemmq.client import Consumer, Outgoing, Producer

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8081"
ledger = sqlite3.connect(":memory:")
ledger.execute("CREATE TABLE done (key TEXT PRIMARY KEY)")
ledger.execute("CREATE TABLE account (balance INTEGER)")
ledger.execute("INSERT INTO account VALUES (0)")


def pay_in(key: str, amount: int) -> bool:
    """Whether it was done now: the key is there, or the amount is booked too."""
    with ledger:  # one transaction
        new = ledger.execute("INSERT OR IGNORE INTO done VALUES (?)", (key,)).rowcount == 1
        if new:
            ledger.execute("UPDATE account SET balance = balance + ?", (amount,))
    return new


with Producer(address) as producer:
    producer.send("payments", b"40", properties={"payment": "p-1"})
    producer.send("payments", b"2", properties={"payment": "p-2"})
    producer.send_batch([Outgoing("payments", b"2", properties={"payment": "p-2"})])  # its sender has died in between

with Consumer(address, group="bank", topic="payments") as consumer:
    for message in islice(consumer, 3):
        pay_in(message.properties["payment"], int(message.body))
        message.ack()  # behind the commit: what dies in between comes again, and is known then

print(ledger.execute("SELECT balance FROM account").fetchone()[0])
