"""The dashboards as data: what each panel asks, in which unit, and what is bad.

`tools/generate_dashboards.py` writes them, and the alert rules.

::

    model                                        panels, rows, dashboards, and how they become Grafana's JSON
    overview, store, replication, metasync, clients
    transactions                                 ... a row of clients
    alerts                                       the alert rules, and how they become Prometheus' YAML
    alert_model, store_alerts, pair_alerts, client_alerts

Expressions are PromQL with three short forms: `{@` begins a selector of the chosen clusters and nodes, `{#` one of the
chosen nodes where a metric has no cluster (`up`, `process_...`), `{%` one of the chosen clusters.
"""
