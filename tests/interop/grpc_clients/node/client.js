// A client in Node: every check against the probe service; one JSON line for each.
//
//   node client.js TARGET [--ca FILE [--cert FILE --key FILE]] [--quick | --refused]
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const { parseArgs } = require('node:util');
const grpc = require('@grpc/grpc-js');

const LARGE = 7 << 20;
const KIB = 1024;
const CHECK_SECONDS = 200;

const same = (value) => value;
const path = (method) => `/tandemmq.test.Probe/${method}`;
const soon = (seconds) => ({ deadline: Date.now() + seconds * 1000 });

/** The probe's methods on one connection. */
class Probe {
  constructor(target, credentials, options = {}) {
    this.client = new grpc.Client(target, credentials, {
      'grpc.max_receive_message_length': 16 << 20,
      'grpc.max_send_message_length': 16 << 20,
      ...options,
    });
  }

  /** A unary call; resolves with answer, initial and trailing metadata, rejects with the status. */
  call(method, request, metadata = new grpc.Metadata(), options = soon(CHECK_SECONDS)) {
    return new Promise((resolve, reject) => {
      let initial;
      let answer;
      const done = (error, value) => (error ? reject(error) : (answer = value));
      const call = this.client.makeUnaryRequest(path(method), same, same, request, metadata, options, done);
      call.on('metadata', (received) => (initial = received));
      call.on('status', (status) => {
        if (status.code === grpc.status.OK) setImmediate(() => resolve({ answer, initial, trailing: status.metadata }));
      });
    });
  }

  async echo(message) {
    const { answer } = await this.call('Echo', message);
    assert(answer.equals(message), `${message.length} bytes came back as ${answer.length} others`);
  }

  collect(messages) {
    return new Promise((resolve, reject) => {
      const done = (error, answer) => (error ? reject(error) : resolve(answer));
      const options = soon(CHECK_SECONDS);
      const call = this.client.makeClientStreamRequest(path('Collect'), same, same, new grpc.Metadata(), options, done);
      messages.forEach((message) => call.write(message));
      call.end();
    });
  }

  serverStream(method, request) {
    return this.client.makeServerStreamRequest(path(method), same, same, request, soon(CHECK_SECONDS));
  }

  converse(options = soon(CHECK_SECONDS)) {
    return this.client.makeBidiStreamRequest(path('Converse'), same, same, options);
  }

  async repeat(count, size) {
    let received = 0;
    for await (const message of this.serverStream('Repeat', Buffer.from(`${count}:${size}`))) {
      assert(message.equals(Buffer.alloc(size, 'r')), `answer ${received} has ${message.length} bytes`);
      received += 1;
    }
    assert.strictEqual(received, count);
  }

  async count() {
    return JSON.parse((await this.call('Count', Buffer.alloc(0))).answer.toString());
  }

  async until(wanted) {
    for (const end = Date.now() + 100_000; ; await new Promise((resolve) => setTimeout(resolve, 5))) {
      const now = await this.count();
      if (wanted(now)) return;
      assert(Date.now() < end, `the server's counters stay at ${JSON.stringify(now)}`);
    }
  }
}

async function failsWith(code, promise) {
  const error = await promise.then(
    () => assert.fail(`status ${code} expected, not an answer`),
    (status) => status,
  );
  assert.strictEqual(error.code, code, `status ${code} expected, not ${error.code}: ${error.message}`);
  return error;
}

const statusOf = (call) => new Promise((resolve) => call.on('error', resolve).on('end', resolve).resume());

const checks = {
  unary: (probe) => probe.echo(Buffer.from('hello')),

  empty: (probe) => probe.echo(Buffer.alloc(0)),

  async client_stream(probe) {
    assert.strictEqual((await probe.collect(['a', '', 'ccc'].map(Buffer.from))).toString(), 'a||ccc');
  },

  server_stream: (probe) => probe.repeat(10, 1000),

  async bidi_stream(probe) {
    const call = probe.converse();
    const answers = call[Symbol.asyncIterator]();
    for (let at = 0; at < 100; at += 1) {
      call.write(Buffer.from(`message ${at}`));
      assert.strictEqual((await answers.next()).value.toString(), `MESSAGE ${at}`);
    }
    call.end();
    assert((await answers.next()).done);
  },

  async no_messages(probe) {
    assert.strictEqual((await probe.collect([])).length, 0);
    await probe.repeat(0, 0);
  },

  async many_messages(probe) {
    const texts = Array.from({ length: 10_000 }, (_, at) => `${at}`);
    assert.strictEqual((await probe.collect(texts.map((text) => Buffer.from(text)))).toString(), texts.join('|'));
    await probe.repeat(10_000, 16);
  },

  large_messages: (probe) => probe.echo(Buffer.from(Uint8Array.from({ length: LARGE }, (_, at) => (at * 7) >> 3))),

  async large_stream(probe) {
    const call = probe.converse();
    const letters = 'abcdefghijklmnop';
    for (const letter of letters) call.write(Buffer.alloc(KIB * KIB, letter));
    call.end();
    let at = 0;
    for await (const message of call) {
      assert(message.equals(Buffer.alloc(KIB * KIB, letters[at].toUpperCase())), `answer ${at}`);
      at += 1;
    }
    assert.strictEqual(at, letters.length);
  },

  async too_large(probe) {
    await failsWith(grpc.status.RESOURCE_EXHAUSTED, probe.call('Echo', Buffer.alloc(9 << 20)));
    await checks.unary(probe);
  },

  async metadata(probe) {
    const sent = new grpc.Metadata();
    sent.set('x-plain', 'two words, ~!@');
    sent.add('x-several', 'one');
    sent.add('x-several', 'two');
    sent.set('x-bytes-bin', Buffer.from([0, 1, 44, 254, 255]));
    sent.set('x-empty-bin', Buffer.alloc(0));
    sent.set('x-long', '0123456789'.repeat(300));
    const { answer, initial, trailing } = await probe.call('Mirror', Buffer.alloc(0), sent);
    assert.match(answer.toString(), /^(ipv4:127\.0\.0\.1:\d+|ipv6:(%5B|\[)::1(%5D|\]):\d+|unix:.*)$/);
    assert.deepStrictEqual(initial.get('x-initial'), ['first']);
    assert.deepStrictEqual(initial.get('x-initial-bin'), [Buffer.from([0, 254])]);
    // Node joins fields of one name; grpc-js takes only those of -bin apart again.
    assert.strictEqual(trailing.get('x-several').join(', '), 'one, two');
    for (const key of ['x-plain', 'x-bytes-bin', 'x-empty-bin', 'x-long']) {
      assert.deepStrictEqual(trailing.get(key), sent.get(key), key);
    }
  },

  async status(probe) {
    const error = await failsWith(grpc.status.NOT_FOUND, probe.call('Fail', Buffer.from('NOT_FOUND')));
    assert.strictEqual(error.details, 'said so é%');
    assert.deepStrictEqual(error.metadata.get('x-failed'), ['yes']);
    assert.deepStrictEqual(error.metadata.get('x-failed-bin'), [Buffer.from([0, 1, 255])]);
  },

  async all_statuses(probe) {
    const names = Object.keys(grpc.status).filter((name) => grpc.status[name] > 0);
    assert.strictEqual(names.length, 16);
    for (const name of names) await failsWith(grpc.status[name], probe.call('Fail', Buffer.from(name)));
  },

  crash: (probe) => failsWith(grpc.status.UNKNOWN, probe.call('Crash', Buffer.alloc(0))),

  unimplemented: (probe) => failsWith(grpc.status.UNIMPLEMENTED, probe.call('Nothing', Buffer.alloc(0))),

  async deadline(probe) {
    const stream = statusOf(probe.converse(soon(0.2)));
    await failsWith(grpc.status.DEADLINE_EXCEEDED, probe.call('Wait', Buffer.alloc(0), undefined, soon(0.2)));
    assert.strictEqual((await stream).code, grpc.status.DEADLINE_EXCEEDED);
    await probe.until((now) => now.active === 0);
  },

  async cancellation(probe) {
    const before = await probe.count();
    let call;
    const ended = new Promise((resolve) => {
      const request = Buffer.alloc(0);
      call = probe.client.makeUnaryRequest(path('Wait'), same, same, request, new grpc.Metadata(), {}, resolve);
    });
    await probe.until((now) => now.active === 1);
    call.cancel();
    assert.strictEqual((await ended).code, grpc.status.CANCELLED);
    await probe.until((now) => now.active === 0 && now.cancelled === before.cancelled + 1);
  },

  async cancelled_stream(probe) {
    const call = probe.serverStream('Drip', Buffer.alloc(0));
    const ended = new Promise((resolve) => call.on('error', resolve));
    let received = 0;
    call.on('data', () => {
      received += 1;
      if (received === 1000) call.cancel();
    });
    assert.strictEqual((await ended).code, grpc.status.CANCELLED);
    await probe.until((now) => now.active === 0);
  },

  // A stream that nobody reads on costs the server a bounded number of bytes, and its neighbours nothing.
  async slow_reader(probe) {
    const before = await probe.count();
    const call = probe.serverStream('Drip', Buffer.alloc(0));
    const ended = new Promise((resolve) => call.on('error', resolve));
    await new Promise((resolve) => call.once('readable', resolve)); // grpc-js holds nothing back before the first read
    call.read();
    for (let at = 0; at < 300; at += 1) await probe.echo(Buffer.alloc(10_000));
    const dripped = (await probe.count()).dripped - before.dripped;
    assert(dripped < 32 * KIB, `${dripped} KiB for a stream that nobody reads`);
    call.cancel();
    assert.strictEqual((await ended).code, grpc.status.CANCELLED);
    await probe.until((now) => now.active === 0);
  },

  async pipelined(probe) {
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(Array.from({ length: 1000 }, (_, at) => probe.echo(Buffer.from(`call ${round} ${at}`))));
    }
  },

  async gzip(_probe, target, credentials) {
    const options = { 'grpc.default_compression_algorithm': grpc.compressionAlgorithms.gzip };
    const probe = new Probe(target, credentials, options);
    await probe.echo(Buffer.alloc(1 << 20, 'compressible '));
    probe.client.close();
  },
};

const QUICK = ['unary', 'client_stream', 'server_stream', 'bidi_stream', 'large_messages', 'status'];

async function main() {
  const text = { type: 'string' };
  const flag = { type: 'boolean' };
  const options = { ca: text, cert: text, key: text, quick: flag, refused: flag };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const read = (file) => (file ? fs.readFileSync(file) : null);
  const credentials = values.ca
    ? grpc.credentials.createSsl(read(values.ca), read(values.key), read(values.cert))
    : grpc.credentials.createInsecure();
  const probe = new Probe(positionals[0], credentials);
  let chosen = values.quick ? QUICK.map((name) => [name, checks[name]]) : Object.entries(checks);
  if (values.refused) {
    chosen = [['refused', () => failsWith(grpc.status.UNAVAILABLE, probe.call('Echo', Buffer.alloc(0)))]];
  }
  for (const [check, run] of chosen) {
    const begin = Date.now();
    let ok = true;
    let detail;
    try {
      await run(probe, positionals[0], credentials);
      detail = `${Date.now() - begin} ms`;
    } catch (error) {
      ok = false;
      detail = `${error.message}`;
    }
    console.log(JSON.stringify({ check, ok, detail }));
  }
  probe.client.close();
}

main();
