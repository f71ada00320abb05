MODEL (
  name mart.line_@area,
  kind FULL,
  owner terminal_data,
  blueprints (
    (area := europe, code := 'EU'),
    (area := asia, code := 'AS'),
    (area := americas, code := 'AM')
  ),
  grain line_code,
  audits (
    UNIQUE_VALUES(columns := (line_code)),
    NOT_NULL(columns := (line_code))
  )
);

SELECT
  l.line_code,
  l.line_name,
  COUNT(DISTINCT c.call_id) AS calls,
  SUM(c.charge) AS charged
FROM ref.lines AS l
LEFT JOIN core.charges AS c
  ON c.line_code = l.line_code
WHERE
  l.area = @code
GROUP BY
  l.line_code,
  l.line_name
