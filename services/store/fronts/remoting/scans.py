"""The requests whose headers are scanned: sends, pulls, pops and their acknowledgements as Java clients write them."""

from tandemmq.store.fronts.remoting.pop_header import POP_SCANS
from tandemmq.store.fronts.remoting.pull_header import PULL_SCANS
from tandemmq.store.fronts.remoting.sent_message import SEND_SCANS

SCANS = (*SEND_SCANS, *PULL_SCANS, *POP_SCANS)
