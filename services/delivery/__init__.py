"""The contract of consuming as a group, `tandemmq.delivery.v1`; what it means is done by `tandemmq.store.delivery`."""
