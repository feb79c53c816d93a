# Collations: with one of ICU's as the database's default, an inbox works as
# with any other; a collation that takes texts that differ for equal is refused
# in an inbox's tables.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

my $node = new_node('main');

if ($node->safe_psql('postgres',
        q{SELECT count(*) FROM pg_collation WHERE collprovider = 'i'}) == 0)
{
    plan skip_all => 'the server was built without ICU';
}

# Creates tables as an older program would, with a collation in one place.
sub create_tables
{
    my ($schema, %collation) = @_;
    my $collate = sub { $collation{ $_[0] } ? "COLLATE $collation{ $_[0] }" : '' };

    return sprintf(q{
        CREATE SCHEMA %1$s;
        CREATE TABLE %1$s.sequence_instance (id bigint PRIMARY KEY, name text NOT NULL,
            context_id text %2$s NOT NULL, state text NOT NULL, created_at timestamptz NOT NULL,
            closed_at timestamptz, retain_until timestamptz NOT NULL);
        CREATE UNIQUE INDEX ON %1$s.sequence_instance (name, context_id %3$s);
        CREATE TABLE %1$s.sequenced_message (id bigint PRIMARY KEY, message_type text %5$s NOT NULL,
            cluster_name text NOT NULL, topic text NOT NULL, sequenced_message_id uuid NOT NULL,
            idempotence_id text %4$s NOT NULL, state text NOT NULL, trace_id_high bigint, trace_id bigint,
            span_id bigint, parent_span_id bigint, trace_id_string text, created_at timestamptz NOT NULL,
            state_changed_at timestamptz,
            sequence_instance_id bigint NOT NULL REFERENCES %1$s.sequence_instance);
        CREATE TABLE %1$s.sequential_inbox_idempotence (message_type text %5$s NOT NULL,
            idempotence_id text %4$s NOT NULL, sequence_instance_id bigint NOT NULL
            REFERENCES %1$s.sequence_instance ON DELETE CASCADE, created_at timestamptz NOT NULL,
            PRIMARY KEY (message_type, idempotence_id));
    }, $schema, map { $collate->($_) } qw(context_id key idempotence_id message_type));
}

sub adopt
{
    my ($schema) = @_;

    return sql_error($node, "SELECT seqinbox_create_inbox('$schema')");
}

$node->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE COLLATION german (provider = icu, locale = 'de-u-kf-upper')});

# A column

$node->safe_psql('postgres',
    create_tables('shop', idempotence_id => 'public.ignore_case'));
my $error = adopt('shop');
like($error, qr/42P21: column "idempotence_id" of table "shop\.sequenced_message" has a nondeterministic collation/,
    'a column with a nondeterministic collation is refused');
like($error, qr/DETAIL: .*"ignore_case".*\nHINT: /, 'its collation is named');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind = 'r'}),
    3, 'nothing was created');
$node->safe_psql('postgres',
    'ALTER TABLE shop.sequenced_message ALTER idempotence_id TYPE text COLLATE german');
like(adopt('shop'), qr/42P21: column "idempotence_id" of table "shop\.sequential_inbox_idempotence"/,
    'so is that of the claims');
$node->safe_psql('postgres',
    'ALTER TABLE shop.sequential_inbox_idempotence ALTER idempotence_id TYPE text COLLATE german');
is(adopt('shop'), 'no error', 'it is accepted with another collation');

# A unique index, where the column's collation is another one: next to the
# primary key it would make a claim on another ID a duplicate.

sub refuses_index
{
    my ($schema, $table, $index) = @_;

    $node->safe_psql('postgres', create_tables($schema));
    is(adopt($schema), 'no error', "$schema: without the index");
    $node->safe_psql('postgres', "CREATE UNIQUE INDEX other ON $schema.$index");
    my $error = adopt($schema);
    like($error, qr/42P21: unique index "other" of table "$schema\.$table" has a nondeterministic collation/,
        "$schema: a unique index with a nondeterministic collation is refused");
    like($error, qr/DETAIL: .*"ignore_case".*\nHINT: /, "$schema: its collation is named");
    $node->safe_psql('postgres', "DROP INDEX $schema.other");
    is(adopt($schema), 'no error', "$schema: accepted once it is dropped");
}

refuses_index('claims', 'sequential_inbox_idempotence',
    'sequential_inbox_idempotence (message_type, idempotence_id COLLATE ignore_case)');
refuses_index('instances', 'sequence_instance',
    'sequence_instance (context_id COLLATE ignore_case, name)');

$node->safe_psql('postgres',
    create_tables('store', key => 'public.ignore_case'));
like(adopt('store'), qr/42P21: unique index /, 'also where it is the only one');
$node->safe_psql('postgres', q{
    DROP INDEX store.sequence_instance_name_context_id_idx;
    CREATE INDEX ON store.sequence_instance (name, context_id COLLATE ignore_case)});
is(adopt('store'), 'no error', 'an index that is not unique may have it');

# An inbox that is changed later

$node->safe_psql('postgres', q{
    SELECT seqinbox_create_inbox('fresh');
    ALTER TABLE fresh.sequence_instance ALTER context_id TYPE text COLLATE ignore_case});
like(adopt('fresh'), qr/42P21: column "context_id"/,
    'an inbox that was changed since is refused, too');

# A deterministic collation of ICU, with an order of its own

my $paths = q{
    SELECT seqinbox_declare('{"sequences": [{"name": "Éclair", "retentionPeriod": "1 day", "messages": [
        {"type": "äpfel"}, {"type": "Zebra"}, {"type": "zebra", "releaseCondition": {"and": [
            {"predecessor": "äpfel"}, {"predecessor": "Zebra"}]}}]}]}');
    SELECT string_agg(ordinal || outcome || release_due, ' ' ORDER BY ordinal)
      FROM seqinbox_receive_batch('{zebra,Zebra,äpfel,zebra,zebra}', '{é,e,E,é,É}', '{o,O,o,o,ö}',
                                  array_fill('v'::bytea, '{5}'));
    SELECT outcome, release_due FROM seqinbox_receive('Zebra', 'É', 'o', 'v');
    SELECT message_type, idempotence_id, context_id FROM seqinbox_next();
    SELECT message_type, idempotence_id, context_id, string_agg(predecessor, ',' ORDER BY predecessor COLLATE "C")
      FROM seqinbox_waiting() GROUP BY 1, 2, 3;
    SELECT seqinbox_claim('zebra', 'é'), seqinbox_claim('zebra', 'e');
};
my $expected = q{
1BUFFEREDtrue 2PROCESSfalse 3PROCESStrue 4DUPLICATEfalse 5BUFFEREDtrue
PROCESS|t
zebra|é|o
zebra|É|ö|Zebra,äpfel
f|t};

my $first_drawn;

sub works
{
    my ($database, $search_path, $name) = @_;

    is($node->safe_psql($database,
            "SET client_encoding = 'UTF8'; SET search_path = $search_path; $paths"),
        $expected, $name);
    my $drawn = $node->safe_psql($database, qq{
        SET client_encoding = 'UTF8';
        SET search_path = $search_path;
        SELECT seqinbox_diagram('Éclair', 'o');
        SELECT message_type, state, messages FROM seqinbox_message_stats()
         WHERE NOT estimated ORDER BY message_type COLLATE "C", state});
    like($drawn, qr/Zebra.*zebra.*^zebra\|WAITING\|1$/ms, "$name: diagram and statistics");
    is($drawn, $first_drawn //= $drawn, "$name: they are as in other inboxes");
    reads_little($database, $search_path, $name);
}

# The indexes are used, although the declarations have another collation: of
# many contexts, and of many messages that wait in one, few rows are read.
sub reads_little
{
    my ($database, $search_path, $name) = @_;

    $node->safe_psql($database, qq{
        SET client_encoding = 'UTF8';
        SET search_path = $search_path;
        SELECT seqinbox_receive('zebra', 'many' || n, 'many', 'v') FROM generate_series(1, 1000) n;
        SELECT seqinbox_receive('äpfel', 'many' || n, 'c' || n, 'v') FROM generate_series(1, 1000) n;
        ANALYZE});
    is($node->safe_psql($database, qq{
            SET client_encoding = 'UTF8';
            SET search_path = $search_path;
            BEGIN;
            SELECT outcome FROM seqinbox_receive('äpfel', 'many1', 'c1', 'v');
            SELECT outcome FROM seqinbox_receive('Zebra', 'few', 'c2', 'v');
            SELECT string_agg(outcome, ' ' ORDER BY ordinal)
              FROM seqinbox_receive_batch('{Zebra,zebra,äpfel}', '{few2,few2,many4}', '{c3,c3,c4}', array_fill('v'::bytea, '{3}'));
            SELECT state FROM seqinbox_lookup('zebra', 'many7');
            SELECT outcome FROM seqinbox_receive('äpfel', 'few', 'many', 'v');
            SELECT outcome FROM seqinbox_receive('Zebra', 'few3', 'many', 'v');
            SELECT idempotence_id FROM seqinbox_next((SELECT id FROM sequence_instance WHERE name = 'Éclair' AND context_id = 'many'));
            SELECT relname, seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables
             WHERE schemaname = current_schema() AND seq_tup_read + idx_tup_fetch > 300;
            SELECT count(*) FROM pg_stat_xact_user_tables
             WHERE schemaname = current_schema() AND idx_tup_fetch > 0 AND relname IN ('sequence_instance', 'sequenced_message');
            COMMIT}),
        "DUPLICATE\nPROCESS\nPROCESS PROCESS DUPLICATE\nWAITING\nPROCESS\nPROCESS\nmany1\n2",
        "$name: few rows are read");
}

$node->safe_psql('postgres', q{SELECT seqinbox_create_inbox('plain')});
works('postgres', 'plain', 'messages with the default of libc');

$node->safe_psql('postgres',
    create_tables('german', map { $_ => 'german' } qw(context_id idempotence_id message_type)));
is(adopt('german'), 'no error', 'columns with a collation of ICU');
works('postgres', 'german', 'messages in columns with a collation of ICU');

SKIP:
{
    skip 'ICU cannot be the default of a database', 1
      if $node->safe_psql('postgres', 'SHOW server_version_num') < 150000;

    $node->safe_psql('postgres', q{
        CREATE DATABASE icu TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de-DE' LOCALE 'C'});
    $node->safe_psql('icu', q{
        CREATE EXTENSION seqinbox;
        SELECT seqinbox_create_inbox('inbox');
        CREATE COLLATION german (provider = icu, locale = 'de-u-kf-upper')});
    works('icu', 'inbox', 'messages with ICU as the default');
    $node->safe_psql('icu', create_tables('adopted'));
    $node->safe_psql('icu', q{SELECT seqinbox_create_inbox('adopted')});
    works('icu', 'adopted', 'messages in adopted tables, with ICU as the default');
}

done_testing();
