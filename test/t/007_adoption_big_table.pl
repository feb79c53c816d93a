# A missing index of a big table is not built during adoption: a notice gives
# the command to run, which works as printed, and all works meanwhile.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use HistoricalInbox;
use InboxStructure;
use SeqinboxSql;
use SeqinboxTest;

my $node = new_node('main', conf => "autovacuum = off\n");
$node->safe_psql('postgres', q{
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('fresh')});

# Indexes of the table that will be big, without the primary key.
sub indexes_of_messages
{
    my ($schema) = @_;

    return grep { /^sequenced_message \(/ } inbox_indexes($node, $schema);
}

my @wanted = indexes_of_messages('fresh');

# The schema name needs quotes in the printed commands. Where no ANALYZE ran,
# the planner judges by the file's size, which here suggests fewer rows.
my %schemas = ('analyzed' => 'Big "inbox', 'never analyzed' => 'Big inbox');
my %rows = ('analyzed' => 150_000, 'never analyzed' => 300_000);

foreach my $name (sort keys %schemas)
{
    my $create_inbox = "SELECT seqinbox_create_inbox('$schemas{$name}')";
    (my $schema = qq{"$schemas{$name}"}) =~ s/(?<=.)"(?=.)/""/g;

    create_historical_inbox($node, $schema, 'V9', indexes => 0);
    $node->safe_psql('postgres', join(";\n",
        "ALTER TABLE $schema.sequence_instance ADD UNIQUE (name, context_id)",
        insert_as_old_program($schema, 'V9', 'sequence_instance', '1 .. 30'),
        insert_as_old_program($schema, 'V9', 'sequenced_message', "1 .. $rows{$name}"),
        "SELECT setval('$schema.sequence_instance_sequence', 31)",
        "SELECT setval('$schema.sequenced_message_sequence', $rows{$name} + 1)",
        $name eq 'analyzed' ? "ANALYZE $schema.sequenced_message" : 'SELECT 1'));

    my @storage = storage($node, $schema);
    my $messages = sql_messages($node, $create_inbox);
    my @commands = $messages =~ /(CREATE (?:UNIQUE )?INDEX CONCURRENTLY [^;\n]+;)/g;

    is(scalar @commands, scalar @wanted, "$name: a command is printed for each missing index");
    is(scalar(grep { !/ ON \Q$schema\E\.sequenced_message / } @commands),
        0, "$name: all of them for the big table");
    is(scalar indexes_of_messages($schema), 0, "$name: no index of the big table was built");
    isnt( scalar(grep { /^sequence_instance \(/ } inbox_indexes($node, $schema)),
        0, "$name: those of small tables were");
    my %storage = map { $_ => 1 } storage($node, $schema);
    is(scalar(grep { !$storage{$_} } @storage), 0, "$name: nothing was rewritten");

    is( $node->safe_psql('postgres', qq{
            SET search_path = $schema;
            SELECT state FROM seqinbox_lookup('OrderCreated', 'message-100000');
            SELECT seqinbox_claim('OrderCreated', 'new', 1);
            SELECT seqinbox_store('OrderCreated', 'new', 1, 'WAITING', message_value => 'v') AS id \\gset
            SELECT seqinbox_fail_and_release(:id);
            SELECT state FROM seqinbox_lookup('OrderCreated', 'new')}),
        "PROCESSED\nt\nt\nFAILED", "$name: all works without the indexes");

    $node->safe_psql('postgres', $_) foreach @commands;
    unlike(sql_messages($node, $create_inbox), qr/INDEX|index/,
        "$name: after these commands no index is missing");
    is(join("\n", indexes_of_messages($schema)), join("\n", @wanted),
        "$name: the commands made what a fresh inbox has");
}

done_testing();
