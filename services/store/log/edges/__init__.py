"""Where this layer touches the machine: disk, time, threads, descriptors.

clock.py             the time of day
disk.py              every side effect on files
file_cache.py        open descriptors
offset_waiters.py    those who wait until the log is somewhere up to an offset
read_only.py         a disk for those who only look
threads.py           work in a thread, to its end
turn_size.py         how much work fits into one turn of the loop
"""
