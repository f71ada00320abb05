MODEL (
  name mart.site_tickets,
  kind VIEW,
  grain ticket_id,
  audits (not_null(columns := (ticket_id)))
);

SELECT t.ticket_id, t.machine_id, t.opened_at FROM stg.tickets AS t WHERE t.hall_path = @site
