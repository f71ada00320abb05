METRIC (
  name ticket_revenue_eur,
  description 'Revenue of tickets in euros, without staff.',
  expression SUM(core.ticket_revenue.revenue_eur)
);

METRIC (
  name tickets_sold,
  expression COUNT(core.ticket_revenue.ticket_id)
);

METRIC (
  name revenue_a_ticket,
  expression ticket_revenue_eur / tickets_sold
);
