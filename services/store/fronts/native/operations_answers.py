"""What operators see, as messages of operations.proto."""

from tandemmq.common.slices import Slices, each
from tandemmq.delivery.v1 import operations_pb2 as pb
from tandemmq.store.delivery.figures.figures import GroupFigures
from tandemmq.store.delivery.figures.standings import OpenMessage, OpenState
from tandemmq.store.delivery.figures.views import GroupView
from tandemmq.store.delivery.figures.waiting_figures import WaitingFigures
from tandemmq.store.delivery.ledger.ways import Way
from tandemmq.store.delivery.members.sessions import Member
from tandemmq.store.delivery.transactions.transactions import HalfView


async def group_view(
    into: pb.ViewGroupsResponse, view: GroupView, now_seconds: float, slices: Slices, *, with_members: bool
) -> None:
    """One group more. `now_seconds`: by the clock of `Member.last_seen`."""
    group = into.groups.add(
        group=view.group,
        consumers=view.consumers,
        producers=len(view.members) - view.consumers,
        acknowledges=Way.ACKNOWLEDGES in view.ways,
        commits=Way.COMMITS in view.ways,
        differing_topics=view.differing_topics,
    )
    await each(lambda one: group.topics.append(_topic(one)), view.figures, slices)
    if with_members:
        await each(lambda one: group.members.append(_member(one, now_seconds)), view.members, slices)


def _topic(one: GroupFigures) -> pb.GroupTopicView:
    return pb.GroupTopicView(
        topic=one.topic,
        lag=one.lag,
        in_flight=one.in_flight,
        ready=one.ready,
        most_deliveries=one.most_deliveries,
        put_off=one.put_off,
        oldest_ms=one.oldest_ms,
        oldest_waiting_ms=one.oldest_waiting_ms,
    )


def _member(one: Member, now_seconds: float) -> pb.MemberView:
    return pb.MemberView(
        client_id=one.client_id,
        producer=one.producer,
        protocol=one.protocol,
        language=one.language,
        version=one.version,
        address=one.address,
        subscriptions=one.subscriptions,
        silent_ms=int(max(now_seconds - one.last_seen, 0) * 1000),
    )


_STATES = {
    OpenState.WAITS: pb.WAITS,
    OpenState.HELD: pb.HELD,
    OpenState.PUT_OFF: pb.PUT_OFF,
    OpenState.READY: pb.READY,
}


def message_standing(one: OpenMessage) -> pb.MessageStanding:
    """One message in one group."""
    place = one.place
    return pb.MessageStanding(
        group=place.group,
        place=pb.MessagePlace(topic=place.topic, queue_id=place.queue, queue_offset=one.offset),
        state=_STATES[one.state],
        deliveries=one.deliveries,
        due_in_ms=one.due_in_ms,
        client_id=one.client_id,
    )


def waiting_view(now: WaitingFigures, halves: list[HalfView]) -> pb.ViewWaitingResponse:
    """What waits, with some half messages."""
    return pb.ViewWaitingResponse(
        timers=now.timers,
        timers_due=now.timers_due,
        timers_late_ms=now.timers_late_ms,
        timers_not_indexed=now.timers_not_indexed,
        levels=(pb.LevelView(level=one.level, messages=one.waiting, late_ms=max(one.late_ms, 0)) for one in now.levels),
        half_messages=sum(count for _, count, _ in now.halves),
        halves=(
            pb.HalfMessageView(
                transaction_id=one.transaction_id,
                group=one.group,
                topic=one.topic,
                age_ms=one.age_ms,
                checks=one.checks,
                handle=one.handle,
            )
            for one in halves
        ),
    )
