# Sessions that stay open while other sessions change the inbox: each claim
# lands in the inbox that search_path names at that moment.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

my $node = new_node('main');
$node->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('inbox');
    CREATE ROLE app});

# Two sessions stay open throughout: one sends its statements as text, the
# other one has prepared them. Both have claimed before anything changes.
my $text = open_session($node);
my $prepared = open_session($node);
my $number = 0;

in_session($_, 'SET search_path = inbox') foreach $text, $prepared;
in_session($prepared,
    'PREPARE claim AS SELECT seqinbox_claim($1, $2); PREPARE try_claim AS SELECT seqinbox_try_claim($1, $2)');

sub claims_of
{
    my ($idempotence_id) = @_;

    return (
        [ $text, "SELECT seqinbox_claim('Text', '$idempotence_id')", 't', 'f' ],
        [ $text, "SELECT seqinbox_try_claim('Try', '$idempotence_id')", 'CLAIMED', 'DUPLICATE' ],
        [ $prepared, "EXECUTE claim('Prepared', '$idempotence_id')", 't', 'f' ],
        [ $prepared, "EXECUTE try_claim('Prepared try', '$idempotence_id')", 'CLAIMED', 'DUPLICATE' ]);
}

# The open sessions claim in the named schema and nowhere else. The claims of
# one ID are free in each inbox that is a new one.
sub claims_land_in
{
    my ($schema, $name) = @_;
    my $fresh = 'fresh-' . ++$number;
    my (@answers, @expected);

    foreach my $claim (claims_of($fresh))
    {
        my ($session, $sql, $won, $duplicate) = @$claim;

        push @answers, in_session($session, $sql), in_session($session, $sql);
        push @expected, $won, $duplicate;
    }
    is("@answers", "@expected", "$name: claims are won once");
    is( $node->safe_psql('postgres',
            "SELECT count(*) FROM $schema.sequential_inbox_idempotence WHERE idempotence_id = '$fresh'"),
        4, "$name: and land in $schema");
    return;
}

sub claims_fail
{
    my ($error, $name) = @_;

    foreach my $claim (claims_of('never'))
    {
        my ($session, $sql) = @$claim;

        like(in_session($session, $sql), $error, "$name: $sql");
    }
    return;
}

my $no_inbox = qr/ERROR:  42P01: there is no inbox.*HINT:  .*seqinbox_create_inbox/s;

claims_land_in('inbox', 'at first');

my @steps = (
    [ 'renamed, and a new one made under the old name',
        q{ALTER SCHEMA inbox RENAME TO old_inbox; SELECT seqinbox_create_inbox('inbox')}, 'inbox' ],
    [ 'two inboxes that swapped their names',
        q{ALTER SCHEMA inbox RENAME TO third; ALTER SCHEMA old_inbox RENAME TO inbox;
          ALTER SCHEMA third RENAME TO old_inbox}, 'inbox' ],
    [ 'dropped and made again',
        q{DROP SCHEMA inbox CASCADE; SELECT seqinbox_create_inbox('inbox')}, 'inbox' ],
    [ 'dropped', q{DROP SCHEMA inbox CASCADE}, $no_inbox ],
    [ 'made again after that', q{SELECT seqinbox_create_inbox('inbox')}, 'inbox' ],
    [ 'its claim table dropped and made again',
        q{DROP TABLE inbox.sequential_inbox_idempotence; SELECT seqinbox_create_inbox('inbox')}, 'inbox' ],
    [ 'its claim table renamed',
        q{ALTER TABLE inbox.sequential_inbox_idempotence RENAME TO other}, $no_inbox ],
    [ 'its claim table renamed back',
        q{ALTER TABLE inbox.other RENAME TO sequential_inbox_idempotence}, 'inbox' ],
    [ 'another table renamed',
        q{ALTER TABLE inbox.sequence_instance RENAME TO other}, qr/ERROR:  42P01: relation "inbox.sequence_instance" does not exist/ ],
    [ 'another table renamed back',
        q{ALTER TABLE inbox.other RENAME TO sequence_instance}, 'inbox' ],
    [ 'a column added',
        q{ALTER TABLE inbox.sequential_inbox_idempotence ADD note text DEFAULT 'x';
          ALTER TABLE inbox.sequence_instance ADD note text}, 'inbox' ],
    [ 'a column dropped',
        q{ALTER TABLE inbox.sequential_inbox_idempotence DROP note}, 'inbox' ],
    [ 'its primary key made again', q{
        ALTER TABLE inbox.sequential_inbox_idempotence DROP CONSTRAINT sequential_inbox_idempotence_pkey;
        ALTER TABLE inbox.sequential_inbox_idempotence ADD CONSTRAINT sequential_inbox_idempotence_pkey
            PRIMARY KEY (message_type, idempotence_id)}, 'inbox' ],
    [ 'rewritten',
        q{VACUUM FULL inbox.sequential_inbox_idempotence, inbox.sequence_instance}, 'inbox' ],
    [ 'the extension updated', q{ALTER EXTENSION seqinbox UPDATE}, 'inbox' ],
    [ 'the extension dropped', q{DROP EXTENSION seqinbox}, qr/ERROR:  42883: function seqinbox_\w+\(.*\) does not exist/ ],
    [ 'the extension created again', q{CREATE EXTENSION seqinbox}, 'inbox' ]);

foreach my $step (@steps)
{
    my ($name, $sql, $result) = @$step;

    $node->safe_psql('postgres', "SET client_min_messages = warning; $sql");
    if (ref $result) { claims_fail($result, $name); }
    else { claims_land_in($result, $name); }
}

# what counts is the first schema of the path that is an inbox at that moment
in_session($_, 'SET search_path = absent, first, inbox') foreach $text, $prepared;
claims_land_in('inbox', 'a schema that does not exist');
$node->safe_psql('postgres', 'CREATE SCHEMA first');
claims_land_in('inbox', 'a schema that is no inbox');
$node->safe_psql('postgres', q{SELECT seqinbox_create_inbox('first')});
claims_land_in('first', 'a schema that became an inbox');
$node->safe_psql('postgres', q{SELECT seqinbox_create_inbox('absent')});
claims_land_in('absent', 'a schema that was created as an inbox');
$node->safe_psql('postgres', 'DROP SCHEMA absent CASCADE');
claims_land_in('first', 'a schema that was dropped');

# privileges, too, are those of the moment
$node->safe_psql('postgres', q{
    GRANT USAGE ON SCHEMA first, inbox TO app;
    GRANT ALL ON ALL TABLES IN SCHEMA first, inbox TO app});
in_session($_, 'SET ROLE app') foreach $text, $prepared;
claims_land_in('first', 'granted');
$node->safe_psql('postgres', 'REVOKE INSERT ON first.sequential_inbox_idempotence FROM app');
claims_fail(qr/ERROR:  42501: permission denied for table sequential_inbox_idempotence/,
    'a privilege was revoked');
$node->safe_psql('postgres', 'REVOKE USAGE ON SCHEMA first FROM app');
claims_land_in('inbox', 'a schema that became invisible');
$node->safe_psql('postgres', q{
    GRANT USAGE ON SCHEMA first TO app;
    GRANT INSERT ON first.sequential_inbox_idempotence TO app});
claims_land_in('first', 'granted again');

$text->quit;
$prepared->quit;
done_testing();
