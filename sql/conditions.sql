-- Release conditions: whatever the order of arrival, a message is handled
-- after its predecessors, and as soon as they have been.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS seqinbox;
SELECT seqinbox_create_inbox('conditions');
RESET client_min_messages;
\set SHOW_CONTEXT never
SET search_path = conditions;

SELECT seqinbox_declare('{"sequences": [
    {"name": "Pair", "retentionPeriod": "1 day", "messages": [
        {"type": "First"},
        {"type": "Second", "releaseCondition": {"predecessor": "First"}}]},
    {"name": "Chain", "retentionPeriod": "1 day", "messages": [
        {"type": "A"},
        {"type": "B", "releaseCondition": {"predecessor": "A"}},
        {"type": "C", "releaseCondition": {"predecessor": "B"}}]},
    {"name": "Fork", "retentionPeriod": "1 day", "messages": [
        {"type": "Root"},
        {"type": "Left", "releaseCondition": {"predecessor": "Root"}},
        {"type": "Right", "releaseCondition": {"predecessor": "Root"}}]},
    {"name": "Either", "retentionPeriod": "1 day", "messages": [
        {"type": "Card"}, {"type": "Cash"},
        {"type": "Paid", "releaseCondition": {"or": [{"predecessor": "Card"}, {"predecessor": "Cash"}]}}]},
    {"name": "All", "retentionPeriod": "1 day", "messages": [
        {"type": "X"}, {"type": "Y"}, {"type": "Z"},
        {"type": "XYZ", "releaseCondition": {"and": [{"predecessor": "X"}, {"predecessor": "Y"}, {"predecessor": "Z"}]}}]},
    {"name": "Nested", "retentionPeriod": "1 day", "messages": [
        {"type": "P"}, {"type": "Q"}, {"type": "R"}, {"type": "S"},
        {"type": "T", "releaseCondition": {"and": [{"or": [{"predecessor": "P"}, {"predecessor": "Q"}]},
                                                   {"or": [{"predecessor": "R"}, {"predecessor": "S"}]}]}},
        {"type": "U", "releaseCondition": {"or": [{"and": [{"predecessor": "P"}, {"predecessor": "R"}]},
                                                  {"and": [{"predecessor": "Q"}, {"predecessor": "S"}]}]}}]},
    {"name": "SubTypes", "retentionPeriod": "1 day", "messages": [
        {"type": "Checked", "subType": "STOCK"}, {"type": "Checked", "subType": "CREDIT"},
        {"type": "Ready", "releaseCondition": {"and": [{"predecessor": "Checked.STOCK"}, {"predecessor": "Checked.CREDIT"}]}},
        {"type": "Warned", "releaseCondition": {"predecessor": "Checked.CREDIT"}}]}]}');

-- First before Second; Second arrives first
SELECT process, outcome, attempts, release_due, sequence_instance_id AS instance
  FROM seqinbox_receive('Second', 's-1', 'context', 'the second') \gset
SELECT :'process' AS process, :'outcome' AS outcome, :attempts AS attempts, :'release_due' AS release_due;
SELECT count(*) AS messages FROM seqinbox_next(:instance);
SELECT process, outcome, attempts, release_due FROM seqinbox_receive('First', 'f-1', 'context', 'the first');
SELECT message_type, idempotence_id, context_id, convert_from(message_value, 'UTF8') AS value, attempts
  FROM seqinbox_next(:instance);
SELECT count(*) AS messages FROM seqinbox_next(:instance);
SELECT message_type, state FROM sequenced_message ORDER BY id;
-- in order, nothing waits
SELECT process, outcome, release_due FROM seqinbox_receive('First', 'f-2', 'in order', 'the first');
SELECT process, outcome, release_due FROM seqinbox_receive('Second', 's-2', 'in order', 'the second');

/*
 * Delivers messages one after the other, as a consumer does: handles what is
 * to be processed, and drains the instance when that is due. Each delivery is
 * shown with what was handled because of it.
 */
CREATE SEQUENCE delivery;
CREATE FUNCTION deliver(context text, types text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    type text;
    received record;
    next record;
    handled text[];
    result text[];
BEGIN
    FOREACH type IN ARRAY types LOOP
        handled := '{}';
        SELECT * INTO STRICT received FROM seqinbox_receive(type, 'id-' || nextval('delivery'), context, NULL);
        IF received.process THEN
            handled := handled || type;
        END IF;
        WHILE received.release_due LOOP
            SELECT * INTO next FROM seqinbox_next(received.sequence_instance_id);
            EXIT WHEN NOT FOUND;
            handled := handled || next.message_type;
        END LOOP;
        result := result || format('%s(%s)', type, array_to_string(handled, ' '));
    END LOOP;
    RETURN array_to_string(result, ' ');
END
$$;

-- three in a chain, in all six orders
SELECT deliver(arrival, string_to_array(arrival, ' '))
  FROM unnest('{A B C,A C B,B A C,B C A,C A B,C B A}'::text[]) AS arrival;
SELECT name, state, count(*) FROM sequence_instance WHERE name = 'Chain' GROUP BY name, state;

-- two successors of one predecessor
SELECT deliver(arrival, string_to_array(arrival, ' '))
  FROM unnest('{Root Left Right,Left Root Right,Left Right Root,Right Left Root}'::text[]) AS arrival;

-- or: the first of the two is enough
SELECT deliver(arrival, string_to_array(arrival, ' '))
  FROM unnest('{Paid Card Cash,Paid Cash Card,Card Paid Cash,Cash Card Paid}'::text[]) AS arrival;

-- and: all of them
SELECT deliver(arrival, string_to_array(arrival, ' '))
  FROM unnest('{XYZ X Y Z,XYZ Z Y X,Y XYZ X Z,X Z XYZ Y,X Y Z XYZ}'::text[]) AS arrival;

-- sub-types are predecessors of their own
SELECT deliver(arrival, string_to_array(arrival, ' '))
  FROM unnest('{Ready Warned Checked.STOCK Checked.CREDIT,
                Ready Warned Checked.CREDIT Checked.STOCK,
                Checked.STOCK Warned Ready Checked.CREDIT}'::text[]) AS arrival;

-- a second message of the same type is handled too: when it comes late, when
-- both wait, when the predecessor comes twice
SELECT deliver(arrival, string_to_array(arrival, ' '))
  FROM unnest('{A A B B C C,B B A C,C B C B A A,A B A B}'::text[]) AS arrival;

-- two sequences that share a context ID do not disturb each other
SELECT deliver('shared', '{B,Left,C,Root,Right,A}');
SELECT name, state FROM sequence_instance WHERE context_id = 'shared' ORDER BY name;

-- nor do two contexts of a sequence
SELECT deliver('context 1', '{B}'), deliver('context 2', '{C,A}'), deliver('context 1', '{A}'), deliver('context 2', '{B}');

-- nested: for T each of the 120 orders of arrival, against the formula
CREATE FUNCTION t_holds(processed text[]) RETURNS boolean LANGUAGE sql AS $$
SELECT ('P' = ANY (processed) OR 'Q' = ANY (processed)) AND ('R' = ANY (processed) OR 'S' = ANY (processed))
$$;
CREATE FUNCTION expected(types text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    type text;
    arrived text[] := '{}';
    t_handled boolean := false;
    handled text;
    result text[];
BEGIN
    FOREACH type IN ARRAY types LOOP
        arrived := arrived || type;
        handled := CASE WHEN type <> 'T' OR t_holds(arrived) THEN type ELSE '' END;
        IF type <> 'T' AND 'T' = ANY (arrived) AND t_holds(arrived) AND NOT t_handled THEN
            handled := handled || ' T';
        END IF;
        t_handled := t_handled OR handled ~ 'T';
        result := result || format('%s(%s)', type, handled);
    END LOOP;
    RETURN array_to_string(result, ' ');
END
$$;
CREATE VIEW permutation AS
WITH RECURSIVE permutation (types) AS (
    SELECT '{}'::text[]
    UNION ALL
    SELECT types || t FROM permutation, unnest('{P,Q,R,S,T}'::text[]) AS t WHERE t <> ALL (types))
SELECT types FROM permutation WHERE array_length(types, 1) = 5;
SELECT types, deliver('shown ' || types::text, types)
  FROM unnest('{T P R Q S,P Q T R S,T P Q R S,R S P T Q}'::text[]) AS arrival, string_to_array(arrival, ' ') AS types;
SELECT count(*) AS orders, count(*) FILTER (WHERE delivered = expected(types)) AS as_expected,
       min(delivered) FILTER (WHERE delivered <> expected(types)) AS first_difference
  FROM (SELECT types, deliver('nested ' || types::text, types) AS delivered FROM permutation OFFSET 0) AS run;

-- is_releasable: each of the 16 sets of processed predecessors
SELECT array_to_string(processed, ' ') AS processed, deliver('set ' || number, processed) AS deliveries,
       seqinbox_is_releasable('T', id) AS t, seqinbox_is_releasable('T', id) = t_holds(processed) AS t_as_expected,
       seqinbox_is_releasable('U', id) AS u,
       seqinbox_is_releasable('U', id) = (processed @> '{P,R}' OR processed @> '{Q,S}') AS u_as_expected,
       seqinbox_is_releasable('P', id) AS p
  FROM generate_series(0, 15) AS number,
       LATERAL (SELECT array_agg(t) FILTER (WHERE number & bit <> 0)
                  FROM (VALUES ('P', 1), ('Q', 2), ('R', 4), ('S', 8)) AS v (t, bit)) AS s (set),
       LATERAL (SELECT coalesce(set, '{}') AS processed) AS p,
       LATERAL (SELECT seqinbox_open_instance('Nested', 'set ' || number) AS id) AS i
 ORDER BY number;

-- a predecessor counts when it has been processed, not while it waits or
-- when it failed; and only within its own instance
SELECT seqinbox_open_instance('Chain', 'states') AS instance \gset
CREATE FUNCTION releasable(instance bigint) RETURNS text LANGUAGE sql AS $$
SELECT string_agg(type, ' ' ORDER BY type) FROM unnest('{A,B,C}'::text[]) AS type WHERE seqinbox_is_releasable(type, instance)
$$;
SELECT releasable(:instance);
SELECT deliver('states', '{B}');
SELECT releasable(:instance);
SELECT seqinbox_record_failure('A', 'fails', 'states', 'error') > 0 AS failed;
SELECT releasable(:instance);
SELECT deliver('states', '{C,A}');
SELECT releasable(:instance);

-- it takes part in the caller's transaction, and changes nothing
BEGIN;
SELECT seqinbox_open_instance('Chain', 'transaction') AS instance \gset
SELECT outcome FROM seqinbox_receive('A', 'transaction', 'transaction', NULL);
SELECT seqinbox_is_releasable('B', :instance), seqinbox_is_releasable('B', :instance) AS again;
SAVEPOINT s;
SELECT outcome FROM seqinbox_receive('B', 'transaction', 'transaction', NULL);
SELECT seqinbox_is_releasable('C', :instance);
ROLLBACK TO s;
SELECT seqinbox_is_releasable('C', :instance);
COMMIT;
BEGIN READ ONLY;
SELECT seqinbox_is_releasable('B', :instance), seqinbox_is_releasable('C', :instance) AS c;
COMMIT;

-- a closed instance keeps nobody waiting
UPDATE sequence_instance SET state = 'CLOSED' WHERE id = :instance;
SELECT seqinbox_is_releasable('C', :instance);

-- the condition is that of the declaration as it is now
UPDATE sequence_instance SET state = 'OPEN' WHERE id = :instance;
UPDATE message_type_declaration SET release_condition = '{"predecessor": "A"}' WHERE message_type = 'C';
SELECT seqinbox_is_releasable('C', :instance);
UPDATE message_type_declaration SET release_condition = '{"predecessor": "unknown"}' WHERE message_type = 'C';
SELECT seqinbox_is_releasable('C', :instance);
UPDATE message_type_declaration SET release_condition = NULL WHERE message_type = 'C';
SELECT seqinbox_is_releasable('C', :instance);

-- what may be wrong
SELECT seqinbox_is_releasable(NULL, :instance);
\echo :SQLSTATE
SELECT seqinbox_is_releasable('C', NULL);
\echo :SQLSTATE
SELECT seqinbox_is_releasable('', :instance);
\echo :SQLSTATE
SELECT seqinbox_is_releasable(repeat('x', 513), :instance);
\echo :SQLSTATE
SELECT seqinbox_is_releasable('Unknown', :instance);
\echo :SQLSTATE
SELECT seqinbox_is_releasable('C', 999999);
\echo :SQLSTATE
SET search_path = conditions_missing;
SELECT seqinbox_is_releasable('C', :instance);
\echo :SQLSTATE
RESET search_path;

SET client_min_messages = warning;
DROP SCHEMA conditions CASCADE;
