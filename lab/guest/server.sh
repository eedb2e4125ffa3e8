#!/bin/busybox sh
# shellcheck disable=SC2034 # $why is for the callers
# PostgreSQL in the guest, under the hook. Its data is in $data, on the stack that is up.

bin=/usr/lib/postgresql/17/bin
data=/mnt/file/data
log=/tmp/server.log
export PGHOST=/tmp PGUSER=postgres PGDATABASE=postgres SHELFLIFE_STATE=/run/postgres/shelflife
mkdir -p /run/postgres
chown postgres /run/postgres

as_postgres() {
	su postgres -s /bin/sh -c "PATH=$bin:/bin; $*"
}

# Makes an empty cluster with checksums. Only what a checkpoint or a commit asks for is written.
make_cluster() {
	mkdir -p $data
	chown postgres $data
	chmod 700 $data
	as_postgres "initdb -D $data -k -A trust --no-instructions --locale=C -E UTF8 --no-sync" >/tmp/said 2>&1 || {
		why="initdb: $(tail -n 1 /tmp/said)"
		return 1
	}
	cat >>$data/postgresql.conf <<-END
		listen_addresses = ''
		unix_socket_directories = '/tmp'
		shared_buffers = 96MB
		max_connections = 20
		checkpoint_timeout = 1h
		max_wal_size = 1GB
		autovacuum = off
		bgwriter_lru_maxpages = 0
		timezone = 'GMT'
		log_timezone = 'GMT'
	END
	# initdb's own sync goes file by file, which takes long here
	sync
}

start_server() {
	as_postgres "shelflife run --policy wal-first --name lab -- pg_ctl -D $data -l $log -w -t 150 start" >/tmp/said 2>&1 || {
		why="start: $(tail -n 1 /tmp/said); $(tail -n 2 $log | tr '\n' ' ')"
		return 1
	}
}

stop_server() {
	as_postgres "pg_ctl -D $data -m fast -w -t 150 stop" >/tmp/said 2>&1 || {
		why="stop: $(tail -n 1 /tmp/said)"
		return 1
	}
}

sql() {
	$bin/psql -XAtq -c "$1"
}
