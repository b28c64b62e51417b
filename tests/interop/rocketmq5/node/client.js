// The official Node client: `client.js HOST:PORT FEATURE TOPIC GROUP`; prints OK when the feature does what it should.
'use strict';
process.env.HOME = require('fs').mkdtempSync(require('path').join(require('os').tmpdir(), 'node-'));
const assert = require('assert');
const { Producer, PushConsumer, SimpleConsumer, ConsumeResult } = require('rocketmq-client-nodejs');
const { TransactionResolution } = require('rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb');

const [endpoints, feature, topic, group] = process.argv.slice(2);
const sessionCredentials = process.env.CLIENT_KEY
  ? { accessKey: process.env.CLIENT_KEY, accessSecret: process.env.CLIENT_SECRET } : undefined;
const common = {
  endpoints, namespace: process.env.CLIENT_NAMESPACE || '', sessionCredentials,
  sslEnabled: process.env.CLIENT_TLS === '1',
};
const SECONDS = 60;
const pause = ms => new Promise(done => setTimeout(done, ms));

const send = (producer, body, fields = {}) => producer.send({ topic, body: Buffer.from(body), ...fields });

async function makeProducer(checker) {
  const made = new Producer({ ...common, topics: [topic], topic, checker });
  await made.startup();
  return made;
}

async function makeSimple(expression = '*', consumerGroup = group, from = topic) {
  const made = new SimpleConsumer({
    ...common, consumerGroup, subscriptions: new Map([[from, expression]]), awaitDuration: 4000,
  });
  await made.startup();
  return made;
}

async function makePush(consume) {
  const made = new PushConsumer({
    ...common, consumerGroup: group, subscriptions: new Map([[topic, '*']]), messageListener: { consume },
  });
  await made.startup();
  return made;
}

async function take(consumer, count, { invisible = 20000, ack = true } = {}) {
  const found = [];
  const deadline = Date.now() + SECONDS * 1000;
  while (found.length < count && Date.now() < deadline) {
    for (const one of await consumer.receive(16, invisible)) {
      found.push(one);
      if (ack) await consumer.ack(one);
    }
  }
  assert.strictEqual(found.length, count);
  return found;
}

async function until(condition, what) {
  const deadline = Date.now() + SECONDS * 1000;
  while (!condition()) {
    assert(Date.now() < deadline, JSON.stringify(what));
    await pause(50);
  }
}

const features = {
  async send() {
    const receipt = await send(await makeProducer(), 'hello', { tag: 't', keys: ['k'] });
    assert(receipt.messageId);
  },
  async simple_consumer() {
    const producer = await makeProducer();
    for (let i = 0; i < 5; i++) await send(producer, `m${i}`, { tag: 't', properties: new Map([['mine', 'yes']]) });
    const found = await take(await makeSimple(), 5);
    assert.deepStrictEqual(found.map(one => one.body.toString()).sort(), ['m0', 'm1', 'm2', 'm3', 'm4']);
    for (const one of found) assert.strictEqual(one.properties.get('mine'), 'yes');
  },
  async tag_filter() {
    const producer = await makeProducer();
    for (const tag of ['a', 'b', 'c']) await send(producer, tag, { tag });
    const found = await take(await makeSimple('a || c'), 2);
    assert.deepStrictEqual(found.map(one => one.body.toString()).sort(), ['a', 'c']);
  },
  async redelivery() {
    await send(await makeProducer(), 'again');
    const consumer = await makeSimple();
    const [first] = await take(consumer, 1, { ack: false });
    const begun = Date.now();
    await consumer.changeInvisibleDuration(first, 2000);
    const [second] = await take(consumer, 1);
    assert.strictEqual(second.deliveryAttempt, 2);
    assert(Date.now() - begun > 1500 && Date.now() - begun < 4500, `${Date.now() - begun} ms`);
  },
  async push_consumer() {
    const seen = [];
    await makePush(async one => { seen.push(one.body.toString()); return ConsumeResult.SUCCESS; });
    const producer = await makeProducer();
    for (let i = 0; i < 20; i++) await send(producer, `p${i}`);
    await until(() => seen.length >= 20, seen);
    assert.strictEqual(new Set(seen).size, 20);
  },
  async push_retry() {
    const attempts = [];
    await makePush(async one => {
      attempts.push(one.deliveryAttempt);
      return attempts.length === 1 ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    });
    await send(await makeProducer(), 'fails once');
    await until(() => attempts.length >= 2, attempts);
    assert.deepStrictEqual(attempts, [1, 2]);
  },
  // The group retries once. The topic of dead letters comes with the first one.
  async dead_letter() {
    const attempts = [];
    await makePush(async one => { attempts.push(one.deliveryAttempt); return ConsumeResult.FAILURE; });
    await send(await makeProducer(), 'dead', { tag: 't', keys: ['k'] });
    await until(() => attempts.length >= 2, attempts);
    const letters = `%DLQ%${group}`;
    let consumer;
    for (const end = Date.now() + SECONDS * 1000; !consumer; await pause(50)) {
      assert(Date.now() < end, 'there are no dead letters');
      consumer = await makeSimple('*', `${group}-letters`, letters).catch(() => undefined);
    }
    const [found] = await take(consumer, 1);
    assert.deepStrictEqual([found.body.toString(), found.tag, found.topic], ['dead', 't', letters]);
    assert.deepStrictEqual(attempts, [1, 2]);
  },
  async fifo() {
    const seen = [];
    await makePush(async one => { seen.push(one.body.toString()); return ConsumeResult.SUCCESS; });
    const producer = await makeProducer();
    for (let i = 0; i < 10; i++) await send(producer, `${i}`, { messageGroup: 'one' });
    await until(() => seen.length >= 10, seen);
    assert.deepStrictEqual(seen, [...Array(10).keys()].map(String));
  },
  async delay() {
    const due = Date.now() + 3000;
    await send(await makeProducer(), 'later', { deliveryTimestamp: new Date(due) });
    await take(await makeSimple(), 1);
    assert(Date.now() >= due - 100 && Date.now() < due + 3000, `${Date.now() - due} ms`);
  },
  async recall() {
    const producer = await makeProducer();
    const receipt = await send(producer, 'never', { deliveryTimestamp: new Date(Date.now() + 6000) });
    await producer.recallMessage(topic, receipt.recallHandle);
    await send(producer, 'marker', { deliveryTimestamp: new Date(Date.now() + 8000) });
    const [one] = await take(await makeSimple(), 1);
    assert.strictEqual(one.body.toString(), 'marker');
  },
  async transaction() {
    const producer = await makeProducer({ check: async () => TransactionResolution.COMMIT });
    const committed = producer.beginTransaction();
    await producer.send({ topic, body: Buffer.from('committed') }, committed);
    await committed.commit();
    const rolledBack = producer.beginTransaction();
    await producer.send({ topic, body: Buffer.from('rolled back') }, rolledBack);
    await rolledBack.rollback();
    const consumer = await makeSimple();
    const [one] = await take(consumer, 1);
    assert.strictEqual(one.body.toString(), 'committed');
    assert.strictEqual((await consumer.receive(16, 20000)).length, 0);
  },
  async orphan() {
    let asked = 0;
    const producer = await makeProducer({ check: async () => { asked++; return TransactionResolution.COMMIT; } });
    await producer.send({ topic, body: Buffer.from('orphan') }, producer.beginTransaction());
    const [one] = await take(await makeSimple(), 1);
    assert.strictEqual(one.body.toString(), 'orphan');
    assert(asked >= 1);
  },
  // Sends and consumes while the broker is killed and comes back: an application tries a send again that failed.
  async outage() {
    const seen = [];
    await makePush(async one => { seen.push(one.body.toString()); return ConsumeResult.SUCCESS; });
    const producer = await makeProducer();
    let failed = 0;
    for (let i = 0; i < 60; i++) {
      for (const deadline = Date.now() + SECONDS * 1000; ;) {
        try { await send(producer, `o${i}`); break; } catch (error) {
          failed++;
          assert(Date.now() < deadline, `the client does not recover: ${error}`);
          await pause(200);
        }
      }
      console.log(`SENT ${i}`);
      await pause(100);
    }
    await until(() => new Set(seen).size === 60, seen);
    console.log(`${failed} sends failed, ${seen.length - 60} messages came again`);
  },
  async wrong_credentials() {
    await assert.rejects(async () => send(await makeProducer(), 'no'));
  },
};

features[feature]().then(() => { console.log('OK'); process.exit(0); }, error => { console.error(error); process.exit(1); });
