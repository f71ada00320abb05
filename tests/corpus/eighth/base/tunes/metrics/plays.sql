METRIC (
  name total_plays,
  description 'Plays that are paid',
  expression SUM(mart.royalties.plays)
);

METRIC (
  name paid_amount,
  expression SUM(mart.royalties.amount)
);

METRIC (
  name amount_per_play,
  expression paid_amount / total_plays
);
