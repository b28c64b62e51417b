"""The data source's parts: columns, options, conditions, batches.

conditions.py        conditions on columns, tested inside the scan with SQL's logic of three values
planning.py          which ranges of a log a scan reads, and whether the log has all of them
record_batches.py    Arrow batches out of the records of a walk
schema.py            the columns of the table, and the choice of some of them
source_filters.py    Spark's filters as conditions of the scan
source_options.py    the options of the data source
where.py             the option ``where``: conditions with AND between them, in SQL's words
"""
