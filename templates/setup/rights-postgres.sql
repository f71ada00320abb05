CREATE ROLE sqlmesh_review LOGIN PASSWORD 'change-me';
CREATE ROLE sqlmesh_apply LOGIN PASSWORD 'change-me-too';

-- The review reads SQLMesh's state, also tables that a later migration of SQLMesh makes.
GRANT USAGE ON SCHEMA sqlmesh TO sqlmesh_review, sqlmesh_apply;
GRANT SELECT ON ALL TABLES IN SCHEMA sqlmesh TO sqlmesh_review;
ALTER DEFAULT PRIVILEGES FOR ROLE sqlmesh_prod IN SCHEMA sqlmesh GRANT SELECT ON TABLES TO sqlmesh_review;

-- The apply and the cleanup write it, and make nothing in it.
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA sqlmesh TO sqlmesh_apply;
ALTER DEFAULT PRIVILEGES FOR ROLE sqlmesh_prod IN SCHEMA sqlmesh
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO sqlmesh_apply;

-- Our own tables. The schema is made here, so that nobody needs the right to create schemas.
CREATE SCHEMA sqlmesh_ci_bot AUTHORIZATION sqlmesh_apply;
-- The deployment reads in it what owners let prod build again.
GRANT USAGE ON SCHEMA sqlmesh_ci_bot TO sqlmesh_review, sqlmesh_prod;
ALTER DEFAULT PRIVILEGES FOR ROLE sqlmesh_apply IN SCHEMA sqlmesh_ci_bot
  GRANT SELECT ON TABLES TO sqlmesh_review, sqlmesh_prod;
