#!/bin/busybox sh
# shellcheck disable=SC2154 # $target, $why, … are set by the other scripts
# Does the recorder see what is written, with its file and hint? Every stack of /lab/stacks gets a file
# of 2 MiB for each hint, while shelflife records and the drivers' tracepoints watch.
#
#   begin NAME / write BUS TAG SECTORS / recorded PATH HINT STREAM BYTES / lost N / end NAME

while read -r name medium layer filesystem options; do
	echo "begin $name" >&3
	if alone "$name" "$medium" "$layer" "$filesystem" "$options"; then
		# shellcheck disable=SC2034 # for files()
		modes=buffered
		files
		sync
		cat >/tmp/load <<-END
			. /lab/judge.sh
			medium=$medium
			watch
			for hint in $hints; do
				dd if=/lab/noise of=$target/buffered-\$hint bs=1M count=2 conv=notrunc,fsync 2>/dev/null || exit 1
			done
			unwatch
		END
		rm -rf /tmp/trace
		if shelflife record -o /tmp/trace --path "$target" -- sh /tmp/load >/tmp/said 2>&1; then
			sed -n 's/.*, \([0-9,]*\) lost.*/lost \1/p' /tmp/said >&3
			writes >&3
			# unix_ns,op,offset,length,hint,stream,flags,device,process,class,path
			shelflife export --to csv /tmp/trace 2>/tmp/said |
				awk -F, '$2 == "write" { path = $11 == "" ? "-" : $11; sum[path " " $5 " " $6] += $4 }
					END { for (key in sum) print "recorded", key, sum[key] }' >&3
		else
			echo "failed record: $(tail -n 1 /tmp/said)" >&3
		fi
	else
		echo "failed $why" >&3
	fi
	down
	echo "end $name" >&3
done </lab/stacks
