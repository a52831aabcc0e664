-- Gulls seen at the lighthouse.
CREATE TABLE sightings (
  id      INTEGER PRIMARY KEY,
  species TEXT    NOT NULL,
  count   INTEGER NOT NULL CHECK (count > 0),
  seen_at TEXT    NOT NULL
);

INSERT INTO sightings (species, count, seen_at) VALUES
  ('Larus argentatus', 12, '2024-01-03T09:15:00Z'),
  ('Larus canus',       5, '2024-01-03T09:20:00Z'),
  ('O''Neill''s gull',  1, '2024-01-04T16:02:00Z');

SELECT species, SUM(count) AS total
FROM sightings
WHERE seen_at >= '2024-01-01'
GROUP BY species
HAVING total > 1
ORDER BY total DESC, species;
