"""Consume as a group: what fails comes again, and what fails for good goes to the dead letters."""

import sys

from tandemmq.client import Consumer, Message, NoLongerHeld, Producer

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8081"


def brew(message: Message) -> None:
    if message.body == b"tea with salt":
        raise ValueError("nobody drinks that")
    if message.body == b"cocoa" and message.delivery_number == 1:
        raise TimeoutError("no milk at present")
    print(f"{message.body.decode()}, delivery {message.delivery_number}", flush=True)


def handle(message: Message) -> None:
    try:
        brew(message)
    except TimeoutError:
        message.retry(after=1)
    except ValueError as error:
        print(f"dead: {error}", flush=True)
        message.dead_letter()
    else:
        message.ack()


with Producer(address) as producer:
    for drink in ("coffee", "cocoa", "tea with salt"):
        producer.send("drinks", drink)

with Consumer(address, group="bar", topic="drinks") as consumer:
    while (message := consumer.receive(timeout=5)) is not None:
        try:
            handle(message)
        except NoLongerHeld:
            print("somebody else has it now")
