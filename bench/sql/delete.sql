-- What housekeeping has to remove here, by one statement for each table.

DELETE FROM message_header h USING buffered_message b, sequence_instance i
 WHERE h.buffered_message_id = b.id AND b.sequence_instance_id = i.id
   AND i.state = 'CLOSED' AND i.retain_until < now();
DELETE FROM buffered_message b USING sequence_instance i
 WHERE b.sequence_instance_id = i.id AND i.state = 'CLOSED' AND i.retain_until < now();
DELETE FROM sequenced_message m USING sequence_instance i
 WHERE m.sequence_instance_id = i.id AND i.state = 'CLOSED' AND i.retain_until < now();
DELETE FROM sequential_inbox_idempotence c USING sequence_instance i
 WHERE c.sequence_instance_id = i.id AND i.state = 'CLOSED' AND i.retain_until < now();
DELETE FROM sequence_instance
 WHERE state = 'CLOSED' AND retain_until < now();
