/*
 * proof.js: what both proofs need: a schema, a handler, and chance that can be
 * repeated.
 */
import { createHash, randomInt } from 'node:crypto';

import { createPool } from './database.js';

export const seed = process.argv[2] ?? String(randomInt(2 ** 32));

/** A new schema with an inbox and the table that the handlers write to. */
export async function createSchema(schema) {
  const pool = createPool();
  try {
    await pool.query(`
      CREATE EXTENSION IF NOT EXISTS seqinbox;
      DROP SCHEMA IF EXISTS ${schema} CASCADE;
      SELECT seqinbox_create_inbox('${schema}');
      -- without a unique key, which would hide what is handled twice
      CREATE TABLE ${schema}.activity (
        delivery_id uuid NOT NULL,
        event text NOT NULL,
        context_id text,
        repository text,
        sender text,
        in_order boolean
      )`);
  } finally {
    await pool.end();
  }
}

/** The business of the consumers. */
export async function recordActivity(client, delivery, inOrder = null) {
  const { id, type, contextId, payload } = delivery;
  await client.query(
    `INSERT INTO activity
       (delivery_id, event, context_id, repository, sender, in_order)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [
      id,
      type,
      contextId,
      payload.repository?.full_name,
      payload.sender?.login,
      inOrder,
    ],
  );
}

export function cut(client) {
  client.connection.stream.destroy();
}

/**
 * Each delivery three times: the second soon after the first, as when a sender
 * gives up waiting too early, the third at any time.
 */
export function shuffle(deliveries) {
  return deliveries
    .flatMap((delivery) => {
      const first = random('first', delivery.id);
      const second = first + random('second', delivery.id) / 300;
      const third = random('third', delivery.id);
      return [first, second, third].map((place) => ({ place, delivery }));
    })
    .sort((a, b) => a.place - b.place)
    .map(({ delivery }) => delivery);
}

/**
 * A number from 0 to below 1 that depends on the seed and on what it is for,
 * but not on which worker asks first.
 */
export function random(...what) {
  const hash = createHash('sha256').update([seed, ...what].join(' '));
  return hash.digest().readUInt32BE() / 2 ** 32;
}
