/*
 * deliver-in-sequence.js: the proof of the sequenced consumer. It delivers each
 * webhook three times, in shuffled order, to 8 consumers that fail and die,
 * with 2 workers beside them. In the end each delivery must have been handled
 * once and in order, or wait for predecessors that were never delivered.
 *
 * Usage: node deliver-in-sequence.js [seed]
 */
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';

import { consumeInOneTransaction } from './consumer.js';
import { createPool } from './database.js';
import { declaration, leftWaiting, missing } from './declaration.js';
import { loadDeliveries } from './deliveries.js';
import {
  createSchema,
  cut,
  random,
  recordActivity,
  seed,
  shuffle,
} from './proof.js';
import { SequencedConsumer } from './sequenced-consumer.js';

const CONSUMERS = 8;
const WORKERS = 2;
const TIMEOUT = 120_000; // what isn't done by then is stuck

// Each hits one in ten calls of a handler.
const FAULTS = ['throws', 'swallows error', 'connection cut', 'dies'];

console.log(`seed ${seed}`);
const deliveries = loadDeliveries();
await prove('order_of_arrival', async (pool) => {
  await deliverInOrderOfArrival(pool);

  const { handled, in_order: inOrder } = await readActivity(pool);
  const outOfOrder = handled - inOrder;
  console.log('order_of_arrival', { handled, outOfOrder });
  assert.equal(handled, deliveries.length);
  // Those without predecessors can't be in order; others must be out of it too.
  const orphans = new Set(leftWaiting(deliveries).map(({ id }) => id));
  assert(outOfOrder > orphans.size, 'in order without sequences');
});
await prove('in_sequence', async (pool) => {
  await pool.query('SELECT seqinbox_declare($1)', [declaration]);
  const counts = await deliverInSequence(pool);
  console.log('in_sequence', counts);
  for (const [what, count] of Object.entries(counts)) {
    assert(count > 0, `did not occur: ${what}`);
  }
  await checkEnd(pool);
});

async function prove(name, run) {
  const schema = `seqinbox_example_${name}`;
  await createSchema(schema);

  const pool = createPool({
    max: CONSUMERS + WORKERS + 1,
    options: `-c search_path=${schema}`,
    statement_timeout: TIMEOUT,
  });
  try {
    await run(pool);
  } finally {
    await pool.end();
  }
}

async function readActivity(pool) {
  const { rows } = await pool.query(
    `SELECT count(*)::int AS handled,
            (count(*) FILTER (WHERE in_order))::int AS in_order,
            array_agg(delivery_id::text) AS ids
     FROM activity`,
  );
  return rows[0];
}

/* All that was delivered was handled once and in order, or waits. */
async function checkEnd(pool) {
  const { rows: waiting } = await pool.query(
    `SELECT idempotence_id AS id, message_type, context_id, predecessor,
            predecessor_state
     FROM seqinbox_waiting() ORDER BY context_id, message_type, id`,
  );
  console.table(waiting.map(({ id, ...row }) => row));
  assert.deepEqual(
    sortRows(
      waiting.map((row) => [row.id, row.predecessor, row.predecessor_state]),
    ),
    sortRows(leftWaiting(deliveries).map(Object.values)),
  );

  const waits = new Set(waiting.map(({ id }) => id));
  const activity = await readActivity(pool);
  assert.deepEqual(
    activity.ids.sort(),
    deliveries
      .map(({ id }) => id)
      .filter((id) => !waits.has(id))
      .sort(),
  );
  assert.equal(activity.in_order, activity.handled, 'handled too early');

  const { rows: records } = await pool.query(
    `SELECT state, count(*)::int FROM sequenced_message
     GROUP BY state ORDER BY state`,
  );
  const sequenced = deliveries.filter(({ contextId }) => contextId !== null);
  assert.deepEqual(records, [
    { state: 'PROCESSED', count: sequenced.length - waits.size },
    { state: 'WAITING', count: waits.size },
  ]);
}

function sortRows(rows) {
  return rows.map((row) => row.join(' ')).sort();
}

/*
 * The business of the consumers. Whether it is its turn, a handler sees in its
 * own transaction: all that it had to wait for must be there.
 */
async function handleInTurn(client, delivery) {
  const { rows } = await client.query(
    'SELECT DISTINCT event FROM activity WHERE context_id = $1',
    [delivery.contextId],
  );
  const handled = new Set(rows.map(({ event }) => event));
  const inOrder = missing(delivery.type, handled).length === 0;

  await recordActivity(client, delivery, inOrder);
  await setTimeout(2); // let others arrive meanwhile
}

/* What a consumer without sequences does: each message once, as it comes. */
async function deliverInOrderOfArrival(pool) {
  const queue = shuffle(deliveries);
  const run = async () => {
    for (let delivery; (delivery = queue.shift());) {
      await consumeInOneTransaction(pool, delivery, (client) =>
        handleInTurn(client, delivery),
      );
    }
  };
  await Promise.all(Array.from({ length: CONSUMERS }, run));
}

/** Delivers until all is acknowledged and settled; counts what occurred. */
async function deliverInSequence(pool) {
  const counts = {
    'handled on delivery': 0,
    'handled in drain': 0,
    'handled by worker': 0,
    'delivered again': 0,
    'died before drain': 0,
  };
  for (const fault of FAULTS) counts[fault] = 0;
  const queue = shuffle(deliveries);
  const countCall = createCounter(); // of the handler
  const countAcknowledgement = createCounter();

  /* A consumer, from its start until it dies. */
  function start(place) {
    const life = { place, fault: null, ended: false };
    const alive = () => {
      if (life.ended) throw new Error('the consumer has died');
      return pool;
    };
    const access = {
      connect: async () => alive().connect(),
      query: async (...query) => alive().query(...query),
    };
    const handle = async (client, delivery) => {
      const call = countCall(delivery.id);
      await handleInTurn(client, delivery);
      counts[`handled ${life.place}`]++;

      const fault = FAULTS[Math.floor(random(delivery.id, call) * 10)];
      if (!fault) return;
      counts[fault]++;
      life.fault = fault;
      await inject(fault, client, life);
    };
    life.consumer = new SequencedConsumer(access, handle, {
      retryAfter: '50 ms',
      pollInterval: 50,
    });
    return life;
  }

  async function consume() {
    for (let delivery; (delivery = queue.shift());) {
      const life = start('on delivery');
      let acknowledged = false;
      const acknowledge = () => {
        acknowledged = true;
        life.place = 'in drain';
        const count = countAcknowledgement(delivery.id);
        life.ended = random('death', delivery.id, count) < 0.2;
      };
      try {
        await life.consumer.consume(delivery, acknowledge);
      } catch (error) {
        if (!life.fault && !life.ended) throw error;
        if (acknowledged && !life.fault) counts['died before drain']++;
      }
      if (!acknowledged) {
        counts['delivered again']++;
        queue.unshift(delivery);
      }
    }
  }

  async function work(signal) {
    while (!signal.aborted) {
      const life = start('by worker');
      await life.consumer.work(signal).catch((error) => {
        if (!life.fault) throw error;
      });
    }
  }

  const stop = new AbortController();
  const workers = Promise.all(
    Array.from({ length: WORKERS }, () => work(stop.signal)),
  );
  const consumers = Promise.all(Array.from({ length: CONSUMERS }, consume));
  try {
    await Promise.race([workers, consumers.then(() => settled(pool))]);
  } finally {
    stop.abort();
    await workers;
  }
  return counts;
}

function createCounter() {
  const counts = new Map();
  return (key) => {
    counts.set(key, (counts.get(key) ?? 0) + 1);
    return counts.get(key);
  };
}

async function inject(fault, client, life) {
  switch (fault) {
    case 'throws':
      throw new Error('injected');
    case 'swallows error':
      await client.query('SELECT 1 / 0').catch(() => {});
      break;
    case 'connection cut':
      cut(client);
      break;
    case 'dies':
      cut(client);
      life.ended = true;
      break;
  }
}

/* Until nothing is left to be released or to be tried again. */
async function settled(pool) {
  for (const deadline = Date.now() + TIMEOUT; ; await setTimeout(50)) {
    const { rows } = await pool.query(
      'SELECT context_id FROM sequence_instance WHERE release_due_at IS NOT NULL',
    );
    if (rows.length === 0) return;
    assert(Date.now() < deadline, `still due: ${JSON.stringify(rows)}`);
  }
}
