"""A row and its message, both or neither: the message waits until the row is committed."""

import sqlite3
import sys
from collections.abc import Sequence

from tandemmq.client import Consumer, Producer, Record, TransactionState

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8081"
shop = sqlite3.connect("file:shop?mode=memory&cache=shared", uri=True, check_same_thread=False)
shop.execute("CREATE TABLE orders (number TEXT PRIMARY KEY)")


def known(keys: Sequence[str]) -> bool:
    return shop.execute("SELECT 1 FROM orders WHERE number = ?", (keys[0],)).fetchone() is not None


def check(half_message: Record) -> TransactionState:
    """Asked where the producer has died before it could say the end: the row tells."""
    return TransactionState.COMMIT if known(half_message.keys) else TransactionState.ROLLBACK


with Producer(address, group="shop", check=check) as producer:
    with producer.transaction() as transaction, shop:
        transaction.send("shop-orders", b"two teas", keys="order-1")
        shop.execute("INSERT INTO orders VALUES ('order-1')")
    try:
        with producer.transaction() as transaction, shop:
            transaction.send("shop-orders", b"once more", keys="order-1")
            shop.execute("INSERT INTO orders VALUES ('order-1')")  # there is such an order: all of this never was
    except sqlite3.IntegrityError:
        print("refused")

with Consumer(address, group="kitchen", topic="shop-orders") as consumer:
    while (message := consumer.receive(timeout=5)) is not None:
        print(message.body.decode())
        message.ack()
