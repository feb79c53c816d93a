# Prometheus' postgres_exporter, connected as an observer of an inbox, serves
# the metrics of monitoring/queries.yaml with the right values; the alert rules
# and the dashboard use no others.

use strict;
use warnings;

use FindBin;
use HTTP::Tiny;
use IO::Socket::INET;
use JSON::PP;
use POSIX qw(dup2);
use PostgreSQL::Test::Utils;
use Test::More;

use SeqinboxTest;

my $program = 'prometheus-postgres-exporter';
my $monitoring = "$FindBin::RealBin/../../monitoring";
my $log = "${PostgreSQL::Test::Utils::log_path}/exporter.log";
my $exporter;

plan skip_all => "$program is not installed" unless grep { -x "$_/$program" } split /:/, $ENV{PATH};

my $help = `$program --help 2>&1`;
plan skip_all => "$program is too old" unless $help =~ /--web\.systemd-socket/;

# only what we have asked for; each version has other metrics of its own
my @no_collectors = map { "--no-collector.$_" } $help =~ /--(?:\[no-\])?collector\.(\w+)\s/g;

sub stop_exporter
{
    return unless $exporter;
    kill 'TERM', $exporter;
    waitpid $exporter, 0;
    undef $exporter;
    return;
}

END
{
    my $status = $?;

    stop_exporter();
    $? = $status;
}

# Starts the exporter and returns its address. It gets the socket as systemd
# would pass it on, so the system chooses the port, nobody can take it before
# the exporter does, and a request waits until the exporter answers.
sub start_exporter
{
    my ($dsn) = @_;
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp', Listen => 5)
      or die "no socket: $@";
    my $address = 'http://127.0.0.1:' . $socket->sockport;

    $exporter = fork // die "cannot fork: $!";
    if ($exporter == 0)
    {
        open STDOUT, '>', $log or POSIX::_exit(1);
        open STDERR, '>&', \*STDOUT or POSIX::_exit(1);
        dup2($socket->fileno, 3) or POSIX::_exit(1);
        @ENV{qw(LISTEN_PID LISTEN_FDS DATA_SOURCE_NAME)} = ($$, 1, $dsn);
        exec $program, '--web.systemd-socket', '--disable-default-metrics', '--disable-settings-metrics', @no_collectors,
            "--extend.query-path=$monitoring/queries.yaml"
          or POSIX::_exit(1);
    }
    return $address;
}

# What is served: "name{label="value",...}" to value, without the label that
# names the server.
sub metrics
{
    my ($address) = @_;
    my $response = HTTP::Tiny->new(timeout => $PostgreSQL::Test::Utils::timeout_default)->get("$address/metrics");
    my %metrics;

    die "no metrics: $response->{status} $response->{content}" unless $response->{success};
    while ($response->{content} =~ /^(\w+)(?:\{(.*)\})? (\S+)$/mg)
    {
        my ($name, $labels, $value) = ($1, $2 // '', $3);
        my @labels = grep { !/^server=/ } $labels =~ /\w+="[^"]*"/g;

        $metrics{ $name . (@labels ? '{' . join(',', sort @labels) . '}' : '') } = $value;
    }
    return %metrics;
}

# All "expr" in a JSON document.
sub json_exprs
{
    my ($node) = @_;

    return map { json_exprs($_) } @$node if ref $node eq 'ARRAY';
    return unless ref $node eq 'HASH';
    return map { $_ eq 'expr' ? $node->{$_} : json_exprs($node->{$_}) } sort keys %$node;
}

my $node = new_node('main');
$node->safe_psql('postgres', q{
    CREATE ROLE prometheus LOGIN;
    CREATE EXTENSION seqinbox;
    SELECT seqinbox_create_inbox('orders');
    SET search_path = orders;
    SELECT seqinbox_grant('prometheus', 'observer');
    SELECT seqinbox_declare('{"sequences": [{"name": "OrderSequence", "retentionPeriod": "24h", "messages": [
        {"type": "OrderPlaced"},
        {"type": "OrderShipped", "releaseCondition": {"predecessor": "OrderPlaced"}}]}]}');

    -- three processed, three waiting, one of them for 1000 seconds
    SELECT seqinbox_receive('OrderPlaced', 'p' || n, 'placed' || n, '\x00') FROM generate_series(1, 3) AS n;
    SELECT seqinbox_receive('OrderShipped', 's' || n, 'shipped' || n, '\x00') FROM generate_series(1, 3) AS n;
    UPDATE sequenced_message SET created_at = created_at - interval '1000 seconds' WHERE idempotence_id = 's1';
    -- two failed, one dead letter
    SELECT seqinbox_record_failure('OrderPlaced', 'f' || n, 'failed' || n, 'no stock', '\x00')
      FROM generate_series(1, 2) AS n;
    SELECT seqinbox_dead_letter(seqinbox_record_failure('OrderPlaced', 'd', 'dead', 'no stock', '\x00'), 'test');
    -- one instance is due, one expired, two expire soon, three are closed
    UPDATE sequence_instance SET release_due_at = CASE context_id
        WHEN 'shipped1' THEN now() WHEN 'shipped2' THEN now() + interval '1 hour' END;
    UPDATE sequence_instance SET retain_until = now() WHERE context_id = 'failed1';
    UPDATE sequence_instance
       SET created_at = created_at - interval '20 hours', retain_until = retain_until - interval '20 hours'
     WHERE context_id IN ('failed2', 'shipped2');
    UPDATE sequence_instance SET state = 'CLOSED', closed_at = now() WHERE context_id LIKE 'placed_';
    ANALYZE sequenced_message, sequence_instance});

# What the exporter serves about the inbox in a schema.
sub metrics_of
{
    my ($schema) = @_;
    my $dsn = sprintf "user=prometheus host=%s port=%d dbname=postgres sslmode=disable options='-c search_path=%s'",
      $node->host, $node->port, $schema;
    my %metrics = eval { metrics(start_exporter($dsn)) };

    is($@, '', "the exporter answers about $schema");
    stop_exporter();
    note(slurp_file($log));
    return %metrics;
}

my %metrics = metrics_of('orders');
my %without_inbox = metrics_of('public');

my $oldest = 'seqinbox_unprocessed_oldest_seconds{message_type="OrderShipped",state="WAITING"}';
cmp_ok($metrics{$oldest} // 0, '>=', 1000, "$oldest is the age");
cmp_ok($metrics{$oldest} // 0, '<', 100_000, 'in seconds');
my $oldest_failed = 'seqinbox_unprocessed_oldest_seconds{message_type="OrderPlaced",state="FAILED"}';
cmp_ok($metrics{$oldest_failed} // 0, '>', 0, "$oldest_failed is the age");

my %expected = (
    'seqinbox_unprocessed_messages{message_type="OrderPlaced",state="FAILED"}' => 2,
    'seqinbox_unprocessed_messages{message_type="OrderPlaced",state="WAITING"}' => 0,
    'seqinbox_unprocessed_messages{message_type="OrderShipped",state="FAILED"}' => 0,
    'seqinbox_unprocessed_messages{message_type="OrderShipped",state="WAITING"}' => 3,
    'seqinbox_unprocessed_oldest_seconds{message_type="OrderPlaced",state="WAITING"}' => 0,
    'seqinbox_unprocessed_oldest_seconds{message_type="OrderShipped",state="FAILED"}' => 0,
    'seqinbox_processed_messages_estimate{message_type="OrderPlaced"}' => 3,
    'seqinbox_processed_messages_estimate{message_type="OrderShipped"}' => 0,
    'seqinbox_sequence_open_instances{sequence_name="OrderSequence"}' => 6,
    'seqinbox_sequence_due_instances{sequence_name="OrderSequence"}' => 1,
    'seqinbox_sequence_expiring_instances{sequence_name="OrderSequence"}' => 2,
    'seqinbox_sequence_expired_instances{sequence_name="OrderSequence"}' => 1,
    'seqinbox_sequence_dead_letters{sequence_name="OrderSequence"}' => 1,
    'seqinbox_sequence_closed_instances_estimate{sequence_name="OrderSequence"}' => 3,
    $oldest => $metrics{$oldest},
    $oldest_failed => $metrics{$oldest_failed});
my %served = map { $_ => $metrics{$_} } grep { /^seqinbox_/ } keys %metrics;
is_deeply(\%served, \%expected, 'all metrics are served with their labels and values, and no others');
is($metrics{pg_exporter_last_scrape_error}, 0, 'no query failed');
is($without_inbox{pg_exporter_last_scrape_error}, 1, 'without an inbox, the metric says so');

# the other files
my %names = map { s/\{.*//r => 1 } keys %metrics;
my $alerts = slurp_file("$monitoring/alerts.yaml");
my @rules = $alerts =~ /^ +- alert: (.*)$/mg;
my @alert_exprs = $alerts =~ /^ +expr: (.*)$/mg;
my @panel_exprs = json_exprs(decode_json(slurp_file("$monitoring/dashboard.json")));

isnt(@rules, 0, 'there are alert rules');
is(@alert_exprs, @rules, 'each has its expression in one line');
isnt(@panel_exprs, 0, 'the dashboard has expressions');
foreach my $expr (@alert_exprs, @panel_exprs)
{
    my @used = $expr =~ /\b((?:seqinbox|pg)_\w+)/g;

    isnt(@used, 0, "a metric is used in $expr");
    ok($names{$_}, "$_ is served") foreach @used;
    foreach my $state ($expr =~ /state="(\w+)"/g)
    {
        ok((grep { /state="$state"/ } keys %metrics), "and there is the state $state");
    }
}

$node->stop;
done_testing();
