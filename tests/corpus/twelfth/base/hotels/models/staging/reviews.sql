MODEL (
  name stg.reviews,
  kind VIEW,
  grain review_id
);

select r.review_id
     , r.reservation_id
     , r.score
     , length(r.body) > 0      as has_text
     , to_date(r.created_at)   as reviewed_on
  from pms.reviews as r
 where r.score between 1 and 10
