/*
 * database.js: connections and transactions, as both consumers need them.
 */
import pg from 'pg';

export function createPool(config) {
  const pool = new pg.Pool(config);

  // A connection that breaks while idle has already left the pool.
  pool.on('error', (error) => console.error('idle connection:', error.message));

  // One that breaks in use fails its next query, and that is where it is dealt
  // with; but an 'error' event without a listener would end the process.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** Runs run(client) in a transaction: all that it wrote is there, or nothing. */
export async function transaction(pool, run) {
  const client = await pool.connect();
  let broken = false;

  try {
    await client.query('BEGIN');
    const result = await run(client);
    const { command } = await client.query('COMMIT');

    // A COMMIT after a failed query is no error, but a rollback: without this
    // a handler that swallows an error would lose the message.
    if (command !== 'COMMIT') {
      throw new Error('transaction was rolled back since a query had failed');
    }
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {
      broken = true;
    });
    throw error;
  } finally {
    client.release(broken); // the pool replaces a broken connection
  }
}
