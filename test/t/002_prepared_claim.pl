# A delivery that waits for the claim of a prepared transaction is woken by
# COMMIT PREPARED or ROLLBACK PREPARED, also when a restart lies between. (The
# isolation specs cannot see it wait: there is no session that it waits for.)

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
    SET search_path = inbox;
    SELECT seqinbox_open_instance('Orders', 'order-1', '1 day');
    SELECT seqinbox_claim('OrderPlaced', 'failing', id),
           seqinbox_store('OrderPlaced', 'failing', id, 'WAITING', 'payload')
      FROM sequence_instance WHERE name = 'Orders'});

sub claim
{
    my ($id) = @_;

    return qq{SELECT seqinbox_claim('OrderPlaced', '$id', id)
        FROM sequence_instance WHERE name = 'Orders'};
}

my $fail = q{SELECT seqinbox_fail_and_release(id, 'no stock')
    FROM seqinbox_lookup('OrderPlaced', 'failing')};

# what is prepared, which message, how it ends, what the waiting claim answers
my @cases = (
    [ 'claim', claim('m-1'), 'm-1', 'COMMIT', 'f' ],
    [ 'claim', claim('m-2'), 'm-2', 'ROLLBACK', 't' ],
    [ 'release', $fail, 'failing', 'ROLLBACK', 'f' ],
    [ 'release', $fail, 'failing', 'COMMIT', 't' ]);

foreach my $restart (0, 1)
{
    foreach my $case (@cases)
    {
        my ($what, $sql, $id, $end, $answer) = @$case;
        my $name = "$end PREPARED of a $what" . ($restart ? ' after a restart' : '');

        $node->safe_psql('postgres', qq{
            SET search_path = inbox;
            DELETE FROM sequential_inbox_idempotence WHERE idempotence_id <> 'failing';
            UPDATE sequenced_message SET state = 'WAITING';
            BEGIN;
            $sql;
            PREPARE TRANSACTION 'holder'});
        if ($restart)
        {
            $node->stop('immediate');
            $node->start;
        }

        my $session = open_session($node);
        in_session($session, 'SET search_path = inbox');
        my $pid = in_session($session, 'SELECT pg_backend_pid()');
        $session->query_until(qr/asked/, "\\echo asked\n" . claim($id) . ";\n");
        $node->poll_query_until('postgres',
            "SELECT 0 = ANY (pg_blocking_pids($pid))")
          or die 'the claim does not wait for the prepared transaction';

        $node->safe_psql('postgres', "$end PREPARED 'holder'");
        is(in_session($session, ''), $answer, $name);
        $session->quit;
    }
}

done_testing();
