# Databases of other encodings than UTF8: names, IDs and errors with letters of
# the encoding's own; limits count bytes; an escape in a declaration that the
# encoding has no letter for is an error, and nothing is declared.

use strict;
use warnings;

use Encode;
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxSql;
use SeqinboxTest;

my $node = new_node('main');

# bytes: of a letter in the database. escape: the letter's code point, where the
# database knows it.
my @encodings = (
    { name => 'UTF8', letter => "\x{767a}", bytes => 3, escape => '767a' },
    { name => 'LATIN1', letter => "\x{e9}", bytes => 1, escape => '00e9', lacks => '767a' },
    { name => 'EUC_JP', letter => "\x{767a}", bytes => 2, escape => '767a', lacks => '0e01' },
    # a byte that is no letter of UTF8
    { name => 'SQL_ASCII', letter => "\xe9", bytes => 1, lacks => '00e9', raw => 1 });

# The result of SQL in which LETTER stands for the letter, or its error.
sub run_sql
{
    my ($encoding, $sql) = @_;
    my $letter = $encoding->{raw} ? $encoding->{letter} : encode('UTF-8', $encoding->{letter});
    my $client = $encoding->{raw} ? 'SQL_ASCII' : 'UTF8';

    $sql =~ s/LETTER/$letter/g;
    my ($exit_code, $stdout, $stderr) = $node->psql($encoding->{database},
        "SET client_encoding = '$client'; SET search_path = inbox; $sql",
        extra_params => [ '-v', 'VERBOSITY=verbose' ]);
    my $result = $exit_code == 0 ? $stdout : $stderr;

    $result =~ s/\Q$letter\E/LETTER/g;
    return $result;
}

sub check_paths
{
    my ($encoding) = @_;

    is(run_sql($encoding, q{
            SELECT seqinbox_declare('{"sequences": [{"name": "LETTER", "retentionPeriod": "1 day", "messages": [
                {"type": "LETTER1"}, {"type": "LETTER2", "releaseCondition": {"predecessor": "LETTER1"}}]}]}');
            SELECT outcome FROM seqinbox_receive('LETTER2', 'LETTER', 'LETTER', 'v', NULL, '{LETTER}', '{h}', 'LETTER', 'LETTER');
            SELECT message_type, context_id, predecessor FROM seqinbox_waiting();
            SELECT outcome, release_due FROM seqinbox_receive('LETTER1', 'LETTER', 'LETTER', 'v');
            SELECT message_type, idempotence_id, context_id, header_names, topic, cluster_name FROM seqinbox_next();
            SELECT outcome FROM seqinbox_receive_batch('{LETTER1,LETTER2}', '{LETTER,LETTER}', '{LETTER,LETTER}', '{v,v}');
            SELECT seqinbox_claim('LETTER', 'LETTERLETTER'), seqinbox_claim('LETTER', 'LETTERLETTER'),
                   seqinbox_try_claim('LETTER', 'LETTER'), seqinbox_try_claim('LETTER', 'LETTER');
            SELECT seqinbox_record_failure('LETTER1', '2', 'LETTER', 'LETTER failed', 'v') > 0;
            SELECT seqinbox_dead_letter((SELECT id FROM sequenced_message WHERE state = 'FAILED'), 'LETTER') > 0;
            SELECT sequence_name, reason, last_error FROM dead_letter;
            SELECT strpos(seqinbox_diagram('LETTER', 'LETTER'), 'LETTER1') > 0;
            }), q{
BUFFERED
LETTER2|LETTER|LETTER1
PROCESS|t
LETTER2|LETTER|LETTER|{LETTER}|LETTER|LETTER
DUPLICATE
DUPLICATE
t|f|CLAIMED|DUPLICATE
t
t
LETTER|LETTER|LETTER failed
t}, "$encoding->{name}: messages");
}

# repeat() makes the letters in the server
sub check_limits
{
    my ($encoding) = @_;
    my $bytes = $encoding->{bytes};
    my ($type, $id) = map { int($_ / $bytes) } 512, 2048;
    my ($type_rest, $id_rest) = map { $_ % $bytes } 512, 2048;
    my $claim = sub {
        my ($more_type, $more_id) = @_;

        return run_sql($encoding, sprintf(
                "SELECT seqinbox_claim(repeat('LETTER', %d) || repeat('x', %d), repeat('LETTER', %d) || repeat('x', %d))",
                $type, $type_rest + $more_type, $id, $id_rest + $more_id));
    };

    is($claim->(0, 0), 't', "$encoding->{name}: as long as can be");
    is($claim->(0, 0), 'f', "$encoding->{name}: again");
    like($claim->(1, 0), qr/22023: argument "message_type" is too long/,
        "$encoding->{name}: a type that is a byte too long");
    like($claim->(0, 1), qr/22023: argument "idempotence_id" is too long/,
        "$encoding->{name}: an ID that is a byte too long");
}

sub check_errors
{
    my ($encoding) = @_;
    my $long = 'LETTER' x 500;

    like(run_sql($encoding, "SELECT seqinbox_receive('$long', 'id', 'c', NULL)"),
        $encoding->{bytes} > 1 ? qr/22023: / : qr/42704: message type "(LETTER){500}" is not declared/,
        "$encoding->{name}: an error that names a long type");
    like(run_sql($encoding, q{
            SELECT seqinbox_declare('{"sequences": [{"name": "LETTER", "retentionPeriod": "LETTER", "messages": [{"type": "LETTER"}]}]}')}),
        qr/22023: .*LETTER/s, "$encoding->{name}: an error in a declaration");
}

sub declare_escaped
{
    my ($encoding, $escape) = @_;

    return run_sql($encoding, sprintf(q{
        SELECT seqinbox_declare('{"sequences": [{"name": "escaped", "retentionPeriod": "1 day", "messages": [{"type": "\u%s"}]}]}');
        SELECT message_type FROM message_type_declaration WHERE sequence_name = 'escaped'}, $escape));
}

sub check_escapes
{
    my ($encoding) = @_;

    is(declare_escaped($encoding, $encoding->{escape}), "\nLETTER",
        "$encoding->{name}: an escape of a letter")
      if $encoding->{escape};
    return unless $encoding->{lacks};

    like(declare_escaped($encoding, $encoding->{lacks}), qr/ERROR:  (22P05|0A000): /,
        "$encoding->{name}: an escape of a letter that it has not");
    is(run_sql($encoding, "SELECT count(*) FROM message_type_declaration WHERE sequence_name = 'escaped' AND message_type <> 'LETTER'"),
        0, "$encoding->{name}: nothing was declared then");
}

foreach my $encoding (@encodings)
{
    $encoding->{database} = lc $encoding->{name};
    $node->safe_psql('postgres',
        "CREATE DATABASE $encoding->{database} TEMPLATE template0 ENCODING '$encoding->{name}' LOCALE 'C'");
    $node->safe_psql($encoding->{database}, q{
        CREATE EXTENSION seqinbox;
        SELECT seqinbox_create_inbox('inbox')});
    check_paths($encoding);
    check_limits($encoding);
    check_errors($encoding);
    check_escapes($encoding);
}

# A client with an encoding of its own sends and gets the same letters.

my $latin1 = encode('latin1', "\x{e9}");
is($node->safe_psql('utf8', qq{
        SET client_encoding = 'LATIN1';
        SET search_path = inbox;
        SELECT seqinbox_claim('$latin1', '$latin1');
        SELECT message_type FROM sequential_inbox_idempotence WHERE message_type = '$latin1';
        SET client_encoding = 'UTF8';
        SELECT seqinbox_claim('} . encode('UTF-8', "\x{e9}', '\x{e9}") . q{')}),
    "t\n$latin1\nf", 'one letter in two encodings of clients');

# A message of a type that the client's encoding lacks is an error of that
# client, and waits for another.
$node->safe_psql('utf8', encode('UTF-8', qq{
    SET client_encoding = 'UTF8';
    SET search_path = inbox;
    SELECT seqinbox_receive('\x{767a}2', 'kept', 'kept', 'v');
    SELECT seqinbox_receive('\x{767a}1', 'kept', 'kept', 'v')}));
like(sql_error($node, q{SET client_encoding = 'LATIN1'; SET search_path = inbox; SELECT message_type FROM seqinbox_next()}, dbname => 'utf8'),
    qr/ERROR:  22P05: /, 'a type that the client cannot be told');
is($node->safe_psql('utf8', q{SET client_encoding = 'UTF8'; SET search_path = inbox; SELECT idempotence_id FROM seqinbox_next()}),
    'kept', 'is handed out to another client');

done_testing();
