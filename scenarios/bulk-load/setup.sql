-- What is loaded: a tenth of the accounts. Relative to the data folder, which is the server's own.
COPY (SELECT * FROM pgbench_accounts WHERE aid <= 10000 * :scale) TO PROGRAM 'cat > bulk-load.dat';
