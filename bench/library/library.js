// Takes in messages with the library pg-transactional-outbox, or with seqinbox,
// both by node-postgres:
//
//     node library.js library|seqinbox CONNECTIONS SECONDS
//
// PGHOST, PGOPTIONS and so on name the server and the inbox. Prints how many
// messages were handled, and how many in a second.
//
// The library stores a message in its inbox, one transaction; its listener polls
// for messages and handles each in a transaction. It gets settings in its favour:
// the messages need not be handled in order; there are as many connections for
// storing and for handling; it polls again at once when it found nothing; no more
// than a hundred messages wait in its table, since polling reads all that wait;
// and a message whose row was locked by the polling itself, so that the listener
// could not handle it, is tried again soon.

import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import {
  DatabaseSetupExporter,
  executeTransaction,
  getDisabledLogger,
  initializeMessageStorage,
  initializePollingMessageListener,
  IsolationLevel,
} from 'pg-transactional-outbox';

const [contender, connections, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const limit = 100;    // of messages that wait in the library's table
const pool = new pg.Pool({ max: connections });

// takes in messages, on each connection one after the other, until the time is up
async function work(takeIn) {
  const start = performance.now();
  const worker = async (number) => {
    for (let n = 0; performance.now() < start + seconds * 1000; n++) {
      await takeIn(`${number}-${Math.floor(n / 10)}`, n % 10);
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, number) => worker(number)));
  return (performance.now() - start) / 1000;
}

function report(handled, elapsed) {
  console.log(handled, handled / elapsed);
}

async function seqinbox() {
  let handled = 0;
  const elapsed = await work(async (context, n) => {
    const { rows } = await pool.query({
      name: 'receive',
      text: 'SELECT * FROM seqinbox_receive($1, $2, $3, $4)',
      values: [`Order${n}`, randomUUID(), context, '{"order": 17}'],
    });
    if (!rows[0].process) throw new Error(rows[0].outcome);
    handled++;
  });
  report(handled, elapsed);
}

async function library() {
  const table = { outboxOrInbox: 'inbox', database: 'bench', schema: 'public', table: 'inbox' };
  await pool.query(DatabaseSetupExporter.createPollingScript(
    { ...table, listenerRole: 'postgres', nextMessagesName: 'next_inbox_messages' }));

  const config = {
    outboxOrInbox: 'inbox',
    dbHandlerConfig: { max: connections },
    dbListenerConfig: { max: connections },
    settings: {
      dbSchema: 'public',
      dbTable: 'inbox',
      nextMessagesBatchSize: Math.max(connections, 5),
      nextMessagesFunctionName: 'next_inbox_messages',
      nextMessagesLockInMs: 500,
      nextMessagesPollingIntervalInMs: 1,
    },
  };
  const logger = getDisabledLogger();
  const store = initializeMessageStorage(config, logger);
  let stored = 0;
  const handled = new Set();
  const handler = { handle: async ({ id }) => handled.add(id) };
  initializePollingMessageListener(config, handler, logger);
  const elapsed = await work(async (context, n) => {
    while (stored - handled.size >= limit) await setTimeout(1);
    stored++;
    const message = {
      id: randomUUID(),
      aggregateType: 'Orders',
      aggregateId: context,
      messageType: `Order${n}`,
      concurrency: 'parallel',
      payload: { order: 17 },
    };
    await executeTransaction(await pool.connect(), (client) => store(message, client), IsolationLevel.ReadCommitted);
  });
  const { rows } = await pool.query('SELECT count(processed_at)::int FROM inbox');
  report(rows[0].count, elapsed);
  process.exit();    // whatever still waits
}

await { seqinbox, library }[contender]();
await pool.end();
