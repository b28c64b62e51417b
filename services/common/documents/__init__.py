"""Small files as text.

* `properties_file`: reads a Java properties file (broker.conf)
* `java_json`: the JSON of RocketMQ's config files, which is not quite JSON
* `sealed`: small JSON documents of ours, with a checksum
"""
