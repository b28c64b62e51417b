"""Send messages, and deal with each way in which that can fail."""

import sys

from tandemmq.client import NotDurable, NotReplicated, Producer, Refused, RequestFailed, Retriable

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8081"

with Producer(address, keep_trying=30, linger=0.005) as producer:
    try:
        sent = producer.send("orders", b"one espresso", tag="coffee", keys="order-1")
        print(f"stored, {sent.status}")
    except (NotReplicated, NotDurable) as error:
        print(f"less safe than it should be: {error}")  # error.sent is stored: sent again, it is there twice
    except Retriable as error:
        print(f"30 seconds were not enough: {error}")  # keep it, and send it later: same UNIQ_KEY, repeatable=True
    except Refused as error:
        print(f"it can never be stored as it is: {error}")
    except RequestFailed as error:
        print(f"a fault in the store, whose log says more: {error}")  # perhaps it is stored

    soon = [producer.send_soon("orders", f"order {number}", keys=f"order-{number}") for number in range(2, 1001)]
    print(f"{sum(one.result().status == 'PUT_OK' for one in soon)} more")  # result() raises what send() raises
