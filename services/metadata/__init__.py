"""The contract of the metadata service, `tandemmq.metadata.v1`; the service itself is `tandemmq.metasync`.

::

    v1/             generated
    transfers.py    tables, put together from the pages in which they travel
"""
