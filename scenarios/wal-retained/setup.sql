SELECT pg_create_physical_replication_slot('nobody', true);
