"""What a hook has to have."""

from typing import Protocol, runtime_checkable

from tandemmq.hooks.contexts import AcknowledgementContext, DeliveryContext, SendContext

GROUP = "tandemmq.hooks"
"""The group of entry points."""


@runtime_checkable
class SendHook(Protocol):
    """Called around each message that a client sends, however it came: alone, in a batch, by any protocol.

    Calls are made on the store's event loop, one after the other: nothing else happens until a hook returns. What takes
    longer than a millisecond belongs into a thread of the hook's own.
    """

    def before_send(self, context: SendContext) -> None:
        """The message has not been looked at yet. Whatever is raised refuses it, with that text; nothing is stored."""
        ...

    def after_send(self, context: SendContext) -> None:
        """What became of it: once for each `before_send` that returned. What is raised is counted and logged."""
        ...


@runtime_checkable
class ConsumeHook(Protocol):
    """Called around each delivery, and around each word of a consumer of what it has been given."""

    def before_delivery(self, context: DeliveryContext) -> None:
        """A consumer pulls or receives. Whatever is raised refuses that call, with that text."""
        ...

    def after_delivery(self, context: DeliveryContext) -> None:
        """What it is given, if anything; the answer is written next."""
        ...

    def before_acknowledgement(self, context: AcknowledgementContext) -> None:
        """A consumer says what became of a message. Whatever is raised refuses that, and nothing changes."""
        ...

    def after_acknowledgement(self, context: AcknowledgementContext) -> None:
        """What became of that."""
        ...
