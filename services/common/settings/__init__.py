"""Typed settings with RocketMQ's names, and those that services share.

* `settings`: typed settings: profile < broker.conf < environment < command line, with origins
* `settings_profiles`: sets of defaults by name
* `settings_errors`: what can be wrong with settings
* `setting_values`: values as text: read, shown, described
* `server_settings`: the settings that every service has: addresses, TLS, metrics, logging, shutdown
* `client_port_settings`: those of a port for RocketMQ 5 clients, a store's or a gateway's
* `service_settings`: which settings each service of a node has, so that one broker.conf serves all
* `setting_names`: their names, generated
* `default_ports`: where services listen unless told otherwise
* `broker_role`: the roles of RocketMQ's setting brokerRole
"""
