"""A message on its way into the log: what a record holds besides its place and time."""

from dataclasses import dataclass

from tandemmq.store.format.host import ANY_HOST, Host


@dataclass(slots=True)
class Message:
    """A message to store. ``properties`` are the encoded bytes (see the module ``properties``)."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes = b""
    flag: int = 0
    """Opaque to the broker."""
    sys_flag: int = 0
    """See the module ``sysflag``; the IPv6 bits are set from the hosts when the record is made."""
    born_timestamp: int = 0
    """ms, the producer's clock."""
    born_host: Host = ANY_HOST
    store_host: Host = ANY_HOST
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    """Of a committed transactional message: physical offset of its half message."""
