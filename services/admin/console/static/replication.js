/** Who copies from whom, put together from what the nodes of a broker say of each other. */

import { num } from "./format.js";

/** Nodes by broker: {name, cluster, nodes, master, links}; those that say nothing of themselves come last. */
export function byBroker(nodes) {
  const brokers = new Map();
  for (const node of nodes) {
    const name = node.brokerName;
    if (!brokers.has(name)) brokers.set(name, { name, cluster: node.clusterName, nodes: [] });
    brokers.get(name).nodes.push(node);
  }
  const known = [...brokers.values()].sort((one, other) => !one.name - !other.name || (one.name < other.name ? -1 : 1));
  return known.map((broker) => {
    const masters = broker.nodes.filter((node) => node.role === "MASTER");
    const master = masters.sort((one, other) => num(other.epoch) - num(one.epoch))[0];
    return { ...broker, master, links: links(broker.nodes, master) };
  });
}

/** One link a slave: {name, node, connected, inSync, lagBytes, lagSeconds, silentSeconds, problem}; `silentSeconds`: 0 while what is due comes. */
function links(nodes, master) {
  const replicas = [...(master?.replication?.replicas ?? [])];
  const take = (fits) => {
    const at = replicas.findIndex(fits);
    return at < 0 ? undefined : replicas.splice(at, 1)[0];
  };
  const others = nodes.filter((node) => node !== master);
  const matched = new Map(others.map((node) => [node, take((one) => one.identity === String(node.brokerId))]));
  // A node whose replicator is away does not say its number: it is one of those that the master still knows of.
  for (const node of others) {
    if (!matched.get(node) && node.brokerId === undefined) matched.set(node, take(() => true));
  }
  const found = others.map((node) => link(node.name, node, matched.get(node), master));
  // Slaves that admin was not told of are copied to as well.
  return [...found, ...replicas.map((replica) => link(`replica ${replica.identity}`, undefined, replica, master))];
}

function link(name, node, replica, master) {
  const follower = node?.replication?.follower;
  const end = num(master?.log?.maxOffset ?? master?.replication?.maxOffset);
  const acked = num(replica?.ackedOffset ?? follower?.ackedOffset);
  const connected = replica?.connected ?? (follower?.state === "FOLLOWING" && !master?.replication);
  return {
    name,
    node,
    connected,
    inSync: Boolean(replica?.inSync),
    lagBytes: replica ? num(replica.lagBytes) : Math.max(0, end - acked),
    lagSeconds: replica ? replica.lagSeconds : undefined,
    silentSeconds: num(replica?.silentSeconds),
    problem: follower?.problem || (connected ? "" : node?.role === "FENCED" ? "replaced by a newer master" : "not connected"),
  };
}
