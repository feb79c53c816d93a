/*
 * consumer.js: two ways to handle each message once, however often and on
 * however many connections it is delivered.
 *
 * Both return 'PROCESSED' or 'DUPLICATE'; then acknowledge the delivery. If
 * they throw, don't acknowledge it: it must be delivered again.
 */
import { transaction } from './database.js';

/**
 * One transaction: the claim and the handler's writes commit together or not
 * at all, so the effects in this database are exactly-once.
 *
 * handle(client) must do its writes with the client that it is given.
 */
export function consumeInOneTransaction(pool, delivery, handle) {
  return transaction(pool, async (client) => {
    if (!(await claim(client, delivery))) return 'DUPLICATE';

    await handle(client);
    return 'PROCESSED';
  });
}

/**
 * Two connections: one holds the claim while the handler works in transactions
 * of its own on another. Two pools, since consumers that each hold a connection
 * and wait for another one of the same pool would wait for ever.
 *
 * The record PROCESSED commits together with the handler's writes. Whoever gets
 * the claim after a crash between the two commits finds the record, and does
 * not handle the message again. What is left is that the claim's connection may
 * break after the last look at it and before the handler's commit: another
 * delivery can then be handled at the same time. So the effects are
 * at-least-once. Where that matters, the handler has to be idempotent.
 */
export async function consumeInTwoConnections(claims, work, delivery, handle) {
  const instance = await openInstance(work, delivery);

  return transaction(claims, async (holder) => {
    if (!(await claim(holder, delivery, instance))) return 'DUPLICATE';
    if (await isRecorded(holder, delivery)) return 'DUPLICATE';

    try {
      await transaction(work, async (client) => {
        await handle(client);
        await store(client, delivery, instance, 'PROCESSED');
        await checkHeld(holder);
      });
    } catch (error) {
      await recordFailure(holder, work, delivery, instance, error);
      throw error;
    }
    return 'PROCESSED';
  });
}

async function claim(client, { type, id }, instance = null) {
  const { rows } = await client.query(
    'SELECT seqinbox_claim($1, $2, $3) AS claimed',
    [type, id, instance],
  );
  return rows[0].claimed;
}

/*
 * This commits at once, since the record's transaction must see the instance
 * that the claim refers to. A delivery without a context has an instance of its
 * own.
 */
async function openInstance(pool, { id, contextId }) {
  const { rows } = await pool.query(
    "SELECT seqinbox_open_instance('GitHub', $1, '7 days') AS instance",
    [contextId ?? id],
  );
  return rows[0].instance;
}

async function isRecorded(client, { type, id }) {
  const { rows } = await client.query(
    'SELECT state FROM seqinbox_lookup($1, $2)',
    [type, id],
  );
  return rows.length > 0 && rows[0].state !== 'FAILED';
}

async function store(client, { type, id }, instance, state, error = null) {
  await client.query('SELECT seqinbox_store($1, $2, $3, $4, error => $5)', [
    type,
    id,
    instance,
    state,
    error,
  ]);
}

/* Throws if the claim is lost because its connection is. */
async function checkHeld(holder) {
  await holder.query('SELECT 1');
}

/*
 * Only whoever holds the claim may write the record. That it could not be
 * written must not hide why the handler failed.
 */
async function recordFailure(holder, work, delivery, instance, error) {
  try {
    await checkHeld(holder);
    await store(work, delivery, instance, 'FAILED', error.message);
  } catch (storeError) {
    throw new AggregateError(
      [error, storeError],
      `${error.message}; not recorded: ${storeError.message}`,
    );
  }
}
