CREATE DATABASE IF NOT EXISTS sqlmesh;
CREATE DATABASE IF NOT EXISTS sqlmesh_ci_bot;
CREATE USER 'sqlmesh_review'@'%' IDENTIFIED BY 'change-me';
CREATE USER 'sqlmesh_apply'@'%' IDENTIFIED BY 'change-me-too';

-- The review reads SQLMesh's state and our tables.
GRANT SELECT ON sqlmesh.* TO 'sqlmesh_review'@'%';
GRANT SELECT ON sqlmesh_ci_bot.* TO 'sqlmesh_review'@'%';

-- The apply and the cleanup write the state, and make nothing in it but our own tables.
GRANT SELECT, INSERT, UPDATE, DELETE ON sqlmesh.* TO 'sqlmesh_apply'@'%';
GRANT ALL ON sqlmesh_ci_bot.* TO 'sqlmesh_apply'@'%';

-- The deployment reads in them what owners let prod build again.
GRANT SELECT ON sqlmesh_ci_bot.* TO 'sqlmesh_prod'@'%';
