MODEL (
  name mart.active_labels,
  kind VIEW,
  owner finance,
  grain label_id
);

SELECT l.label_id, l.name || ' (' || l.label_id || ')' AS label
FROM ref.labels AS l
LEFT SEMI JOIN mart.royalties AS r ON r.label_id = l.label_id
