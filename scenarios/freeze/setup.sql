CREATE SEQUENCE cold_number;
