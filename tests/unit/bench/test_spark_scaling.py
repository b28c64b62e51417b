"""The model of a rebuild on more cores: it adds up, and gives back what it was made from."""

from dataclasses import replace

import pytest

from bench.groups.spark import DRIVER, ONE, PART_SHARES, SEQUENTIAL, TASKS, TWO, driver_name, part_name, tasks_name
from bench.model import Case, Results, Sample
from bench.spark_scaling import ScalingCosts, predict, scaling

COSTS = ScalingCosts(
    job=0.1, handing_out=0.002, task=0.01, scan=0.3, unit=20e-9, key_looked_at=4e-9, key_put=60e-9, entry=5e-9,
    driver=0.2, driver_range=1e-4, driver_range_queue=1e-5, sequential=0.5, messages=800_000, keys=1_600_000,
)  # fmt: skip


def test_one_core_does_all_work_one_after_the_other() -> None:
    one = predict(COSTS, 10, 1)
    assert one.scan == pytest.approx(10 * 0.3)
    assert one.index == pytest.approx(16e6 * 64e-9 + 8e6 * 20e-9)
    assert one.spark == pytest.approx(2 * 0.1 + 6 * 0.01 + 2 * 0.002)
    assert one.driver == pytest.approx(0.2 + 75 * (1e-4 + 64e-5) + 16e6 * 5e-9)
    assert one.seconds == pytest.approx(one.scan + one.index + one.check + one.spark + one.driver)
    assert one.gain == pytest.approx(5 / one.seconds)


def test_cores_gain_no_more_than_they_are() -> None:
    for gigabytes in (1, 100, 10_000):
        alone = predict(COSTS, gigabytes, 1).seconds
        before = alone
        for cores in (2, 16, 100):
            seconds = predict(COSTS, gigabytes, cores).seconds
            assert alone / cores <= seconds
            assert seconds <= before or gigabytes == 1  # handing out to a hundred cores may cost more than it gains
            before = seconds


def test_a_driver_that_hands_out_slowly_is_what_counts() -> None:
    slow = predict(replace(COSTS, handing_out=10.0), 1_000, 100)
    assert slow.spark > 299 * 10.0


def test_costs_are_read_from_a_run() -> None:
    results = Results()

    def add(case: str, who: str, sample: Sample) -> None:
        results.add(Case(f"spark.{case}", "", "seconds"), who, sample)

    for tasks in TASKS:
        for cores, master in ((1, ONE), (2, TWO)):
            seconds = COSTS.job + tasks * (COSTS.handing_out + COSTS.task / cores)
            add("tasks", tasks_name(tasks, master), {"seconds": seconds})
    for ranges, queues in DRIVER:
        seconds = ranges * (COSTS.driver_range + queues * COSTS.driver_range_queue)
        add("driver", driver_name(ranges, queues), {"seconds": seconds})
    for share in PART_SHARES:
        add("part", part_name(share), {"ns_a_key": (COSTS.key_looked_at + COSTS.key_put / share) * 1e9})
    assert scaling(results) is None, "the rebuilds are missing"
    over = COSTS.job + 6 * COSTS.handing_out + 3 * COSTS.task
    add("both-1k", SEQUENTIAL, {"seconds": 2.0})
    index_job = 3_200_000 * COSTS.unit / 2 + over
    add("queues-1k", TWO, {"index_job_s": index_job, "m_msg_s": 3.2 / 1.2, "seconds": 1.2})
    add("both-1k", TWO, {
        "gb_s": 4 / 1.5, "seconds": 1.5, "m_msg_s": 3.2 / 1.5, "scan_job_s": 4 * COSTS.scan / 2 + over, "ranges": 32,
        "check_s": 6_400_000 * COSTS.entry, "index_entries": 6_400_000,
        "driver_s": 0.2 + 6_400_000 * COSTS.entry + 32 * (1e-4 + 16e-5),
    })  # fmt: skip
    model = scaling(results)
    assert model is not None
    assert vars(model.costs) == pytest.approx(vars(COSTS))
    assert any(line.startswith("| 1,000 | 100 |") for line in model.lines)
