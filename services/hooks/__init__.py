"""RocketMQ's send and consume hooks, in Python: code of yours that a broker calls around each send and each delivery.

A hook is an object with the methods of `SendHook`, of `ConsumeHook`, or of both. A package offers a class, or a
function that takes nothing and gives the object, as an entry point of the group ``tandemmq.hooks``; the setting `hooks`
of the store names which are called, in that order. docs/hooks.md has an example.

* `interface`: SendHook and ConsumeHook
* `contexts`: what a hook is told
"""

from tandemmq.hooks.contexts import (
    AcknowledgementContext,
    ConsumerSays,
    DeliveredMessage,
    DeliveryContext,
    HookContext,
    SendContext,
)
from tandemmq.hooks.interface import GROUP, ConsumeHook, SendHook

__all__ = [
    "GROUP",
    "AcknowledgementContext",
    "ConsumeHook",
    "ConsumerSays",
    "DeliveredMessage",
    "DeliveryContext",
    "HookContext",
    "SendContext",
    "SendHook",
]
