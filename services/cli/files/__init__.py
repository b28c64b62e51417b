"""Commands on a store's directory: looking, comparing, rebuilding, exporting.

audit.py            `tandem data audit`: consume queues and index of a store, compared with its commit log
data.py             `tandem data`, whose verbs these are
export.py           `tandem data export`: messages of a log as Parquet files
inspect.py          `tandem data inspect`: what lies in a store directory, without opening it
rebuild.py          `tandem data rebuild`: consume queues and index of a store, from its commit log
spark_options.py    options of the commands that run on Spark, and the session that they ask for
"""
