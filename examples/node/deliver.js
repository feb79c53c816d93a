/*
 * deliver.js: the proof. It delivers each webhook three times, in shuffled
 * order and over 8 connections, to handlers that fail and on connections that
 * break, and delivers again what was not acknowledged. In the end each delivery
 * must have been handled once.
 *
 * Usage: node deliver.js [seed]
 */
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';

import {
  consumeInOneTransaction,
  consumeInTwoConnections,
} from './consumer.js';
import { createPool } from './database.js';
import { loadDeliveries } from './deliveries.js';
import {
  createSchema,
  cut,
  random,
  recordActivity,
  seed,
  shuffle,
} from './proof.js';

const WORKERS = 8;

// Each fault named here hits one in twenty calls of a handler.
const FAULTS = ['throws', 'throws', 'swallows error', 'connection cut'];

const WAYS = [
  {
    name: 'look_up_only',
    consume: consumeAfterLookUp,
    faults: FAULTS,
    exactlyOnce: false,
  },
  {
    name: 'one_transaction',
    consume: ({ work }, ...rest) => consumeInOneTransaction(work, ...rest),
    faults: FAULTS,
    exactlyOnce: true,
  },
  {
    name: 'two_connections',
    consume: ({ claims, work }, ...rest) =>
      consumeInTwoConnections(claims, work, ...rest),
    faults: [...FAULTS, 'claim cut', 'cut between commits'],
    exactlyOnce: true,
    records: true,
  },
];

console.log(`seed ${seed}`);

const deliveries = loadDeliveries();
assert.equal(deliveries.length, 329);
for (const way of WAYS) await prove(way);

async function prove(way) {
  const schema = `seqinbox_example_${way.name}`;
  await createSchema(schema);

  const config = {
    max: WORKERS,
    options: `-c search_path=${schema}`,
    statement_timeout: 120_000, // a claim that is never freed is a failure
  };
  const pools = { claims: createPool(config), work: createPool(config) };
  try {
    const counts = await deliverAll(way, pools);
    const { rows } = await pools.work.query(
      `SELECT count(*)::int AS handled,
              count(DISTINCT delivery_id)::int AS deliveries
       FROM activity`,
    );
    console.log(way.name, { ...counts, ...rows[0] });

    assert.equal(rows[0].deliveries, deliveries.length, 'a delivery is lost');
    if (way.exactlyOnce) {
      assert.equal(rows[0].handled, deliveries.length, 'handled twice');
    } else {
      assert(rows[0].handled > deliveries.length, 'no repeats without a claim');
    }
    if (way.records) await checkRecords(pools.work, counts);
    for (const [what, count] of Object.entries(counts)) {
      assert(count > 0, `did not occur: ${what}`);
    }
  } finally {
    await Promise.all([pools.claims.end(), pools.work.end()]);
  }
}

/* Each failure was recorded while the claim was held, and at last the success. */
async function checkRecords(pool, counts) {
  const { rows } = await pool.query(
    `SELECT count(*) FILTER (WHERE state = 'PROCESSED')::int AS processed,
            sum(attempts)::int AS failures
     FROM activity, seqinbox_lookup(event, delivery_id::text)`,
  );
  assert.deepEqual(rows[0], {
    processed: deliveries.length,
    failures:
      counts.throws + counts['swallows error'] + counts['connection cut'],
  });
}

/** Delivers until all is acknowledged; returns how often what occurred. */
async function deliverAll(way, pools) {
  const queue = shuffle(deliveries);
  const inFlight = new Array(WORKERS).fill(null);
  const calls = new Map(); // of the handler, by delivery
  const counts = { 'copy in flight': 0 };
  for (const fault of way.faults) counts[fault] = 0;

  async function work(_, worker) {
    let holder; // the connection that holds this worker's claim
    const claims = {
      connect: async () => (holder = await pools.claims.connect()),
    };

    for (let delivery; (delivery = queue.shift());) {
      inFlight[worker] = delivery;

      let fault;
      const handle = async (client) => {
        const call = (calls.get(delivery.id) ?? 0) + 1;
        calls.set(delivery.id, call);
        fault = way.faults[Math.floor(random(delivery.id, call) * 20)];

        await recordActivity(client, delivery);
        await setTimeout(2); // let others arrive meanwhile
        if (inFlight.filter((other) => other === delivery).length > 1) {
          counts['copy in flight']++;
        }
        if (fault) counts[fault]++;
        await inject(fault, client, holder);
      };

      const acknowledged = await way
        .consume({ ...pools, claims }, delivery, handle)
        .then(
          () => true,
          (error) => {
            if (!fault) throw error;
            return false;
          },
        );
      inFlight[worker] = null;
      assert.equal(acknowledged, !fault, `acknowledged in spite of: ${fault}`);

      // At once, when the server may not have noticed yet what broke.
      if (!acknowledged) queue.unshift(delivery);
    }
  }

  await Promise.all(Array.from(inFlight, work));
  return counts;
}

async function inject(fault, client, holder) {
  switch (fault) {
    case 'throws':
      throw new Error('injected');
    case 'swallows error':
      await client.query('SELECT 1 / 0').catch(() => {});
      break;
    case 'connection cut':
      cut(client);
      break;
    case 'claim cut':
      cut(holder);
      await setTimeout(20); // unaware of it, while another may take over
      break;
    case 'cut between commits':
      cutAtCommit(holder);
      break;
  }
}

function cutAtCommit(client) {
  const { query } = client;
  client.query = (text, ...rest) => {
    if (text === 'COMMIT') cut(client);
    return query.call(client, text, ...rest);
  };
}

/* What looks safe and is not: two deliveries at once both find no row. */
async function consumeAfterLookUp({ work }, delivery, handle) {
  const client = await work.connect();
  try {
    await client.query('BEGIN');
    const { rows } = await client.query(
      'SELECT FROM activity WHERE delivery_id = $1',
      [delivery.id],
    );
    if (rows.length === 0) await handle(client);
    const { command } = await client.query('COMMIT');
    assert.equal(command, 'COMMIT');
    client.release();
  } catch (error) {
    client.release(error);
    throw error;
  }
}
