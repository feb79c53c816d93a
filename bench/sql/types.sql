-- Sequences, as many as the variable sequences says, with ten types each.

INSERT INTO sequence_declaration (name, retention_period)
SELECT 'S' || s, '7 days' FROM generate_series(0, :sequences - 1) s;

INSERT INTO message_type_declaration (message_type, sequence_name, place)
SELECT 'S' || s || 'T' || t, 'S' || s, t
  FROM generate_series(0, :sequences - 1) s, generate_series(0, 9) t;

VACUUM (ANALYZE) sequence_declaration, message_type_declaration;
