"""What files need, whether a broker runs or not: every service and every job does it in the same way.

file_system.py  the calls that writing a file takes, handed in so that tests can make each one fail; `LOCAL`
replacing.py    a file that gets another content, or a directory that is made, as a whole and durably
exchange.py     two names that change places in one step
record_lock.py  the lock on a store directory, as RocketMQ takes it
os_errors.py    what a person can do about an error of the operating system
boot.py         which start of the machine this is
"""
