#!/bin/sh
# PostgreSQL's own tests, with every server and client under the hook and switched all the while.
#
#   scripts/regress.sh [core] [watched] [decoding] [recovery]
#
# core      the regression suite, as `make check` runs it (the default)
# watched   the same without the hook, with a daemon attached to its server
# decoding  contrib/test_decoding: SQL, isolation and TAP tests
# recovery  src/test/recovery: TAP tests of crashes, standbys, archives, promotion
#
# Suite and server must be of one version, so both come from the package manager together: the
# newest source package of the installed major version that can be fetched, and beside it the
# server's packages of that very version, unpacked below target/regress and not installed. So
# nobody's server is upgraded (or taken back) by a test, and root is not needed. What was fetched
# is kept, by version.
#
# Exit: 0 all passed; 1 a test failed, a server was without the hook, or nothing was hinted;
# 3 something is missing here. A TAP test that fails is run once more without the hook; one that
# fails there too is named, and not held against the hook.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
cache=$target/regress
user=postgres # who runs the servers if root calls: PostgreSQL refuses root
[ $# != 0 ] || set -- core

stop() {
	echo "regress: $*" >&2
	exit 3
}

tools='gcc libc6-dev dpkg-dev'
case " $* " in *' decoding '* | *' recovery '*) tools="$tools make libipc-run-perl" ;; esac
# shellcheck disable=SC2086 # a list of words
scripts/packages.sh $tools
major=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' 'postgresql-[0-9]*' |
	sed -n 's/^ii *postgresql-\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
[ -n "$major" ] || stop "no PostgreSQL server is installed; \`make packages\` does that"
for file in debug/shelflife hook/libshelflife_preload.so; do
	[ -f "$target/$file" ] || stop "$target/$file is missing; \`make regress\` builds it"
done

# --- source and server, from the machine's own package sources ------------------------------------

# apt with this machine's sources, source packages added, and lists of its own: the machine's
# lists may be old, and only root may renew them.
apt() {
	command=$1
	shift
	"$command" -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/sources" \
		-o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" \
		-o APT::Sandbox::User="$(id -un)" "$@"
}

renew_lists() {
	apt=$(cd "$cache" && pwd)/apt
	rm -rf "$apt/sources"
	mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ ! -f "$file" ] || sed -n 'p; s/^deb\([[:space:]]\)/deb-src\1/p' "$file" \
			>"$apt/sources/$(basename "$file" .list).list"
	done
	for file in /etc/apt/sources.list.d/*.sources; do
		[ ! -f "$file" ] ||
			sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$apt/sources/$(basename "$file")"
	done
	# Without a network the lists and packages of the last time serve.
	apt apt-get update >/dev/null 2>&1 || echo "regress: the package lists could not be renewed" >&2
}

# Fetches version $1 into $cache/$1, or leaves nothing.
fetch() (
	set -e
	rm -rf "$cache/fetch"
	mkdir -p "$cache/fetch/root"
	cd "$cache/fetch"
	apt apt-get source --download-only "postgresql-$major=$1"
	for package in "postgresql-$major" "postgresql-client-$major" "postgresql-server-dev-$major"; do
		apt apt-get download "$package=$1"
	done
	# The signature is on apt's lists, which name the checksums of these files.
	dpkg-source --no-check -x ./*.dsc source
	for package in *.deb; do dpkg -x "$package" root; done
	mkdir -p ../fetched/contrib ../fetched/src/test
	mv root ../fetched/
	for part in regress recovery isolation perl; do mv "source/src/test/$part" ../fetched/src/test/; done
	mv source/contrib/test_decoding ../fetched/contrib/
	# The C functions that the tests load.
	gcc -O2 -fPIC -shared -I "../fetched/root/usr/include/postgresql/$major/server" \
		-o ../fetched/regress.so ../fetched/src/test/regress/regress.c
	cd ..
	rm -rf fetch
	mv fetched "$1"
)

mkdir -p "$cache"
renew_lists
version=
for try in $(apt apt-cache showsrc "postgresql-$major" | sed -n 's/^Version: //p' | sort -uVr); do
	if [ ! -d "$cache/$try" ]; then
		rm -rf "$cache/fetched"
		# Not as the condition of an `if`: that would switch off `set -e` within.
		set +e
		fetch "$try" >"$cache/fetch.log" 2>&1
		fetched=$?
		set -e
		if [ $fetched != 0 ]; then
			echo "regress: version $try cannot be fetched; the one before it is tried" >&2
			continue
		fi
	fi
	version=$try
	break
done
[ -n "$version" ] || stop "no source package of postgresql-$major with its server can be fetched: $(
	tail -n 3 "$cache/fetch.log" 2>/dev/null | sed 's#[a-z]*://[^ ]*##')"

# --- a folder that the servers' user can read, gone at the end -------------------------------------

scratch=$(mktemp -d "${TMPDIR:-/tmp}/shelflife-regress.XXXXXX")
bindir=$scratch/root/usr/lib/postgresql/$major/bin
pgxs=$scratch/root/usr/lib/postgresql/$major/lib/pgxs
as_user=
[ "$(id -u)" != 0 ] || as_user="setpriv --reuid=$user --regid=$user --init-groups"

# Runs the rest as the servers' user, in an environment that is the same everywhere, with the
# signals that a shell takes from what it puts in the background.
clean_run() {
	# shellcheck disable=SC2086 # a list of words, or nothing
	$as_user env -i --chdir="$scratch" --default-signal=INT,QUIT \
		PATH="$bindir:$scratch/bin:/usr/bin:/bin" HOME="$scratch" LANG=C \
		TMPDIR="$scratch/tmp" SHELFLIFE_STATE="$scratch/state" bindir="$bindir" \
		PGPORT=65432 PG_REGRESS="$pgxs/src/test/regress/pg_regress" \
		REGRESS_SHLIB="$scratch/regress.so" PG_TEST_TIMEOUT_DEFAULT=600 PGCTLTIMEOUT=600 \
		TESTDIR="$scratch/out" TESTDATADIR="$scratch/out/data" TESTLOGDIR="$scratch/out/log" \
		top_builddir="$scratch/out" ${watched:+"watched=$watched"} "$@"
}

# Every process that works in the folder is one of ours: servers and tests do.
# shellcheck disable=SC2317 # called by the trap, through clean
processes() {
	find /proc -maxdepth 2 -name cwd -lname "$scratch*" 2>/dev/null | sed 's#/proc/\(.*\)/cwd#\1#'
}
# shellcheck disable=SC2317 # called by the trap
clean() {
	trap '' INT TERM HUP
	for signal in QUIT QUIT KILL KILL; do
		pids=$(processes)
		[ -n "$pids" ] || break
		# shellcheck disable=SC2086 # a list of numbers
		kill -s "$signal" $pids 2>/dev/null || true
		sleep 1
	done
	# Collects the run, whose control page would outlive its folder.
	clean_run shelflife status >/dev/null 2>&1 || true
	rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

cp -r "$cache/$version/." "$scratch/"
mkdir "$scratch/bin" "$scratch/hook" "$scratch/state" "$scratch/tmp" "$scratch/out"
cp "$target/debug/shelflife" scripts/regress-inside.sh "$scratch/bin/"
cp "$target/hook/libshelflife_preload.so" "$scratch/hook/"
# Modules of contrib/spi that tests load from where regress.so is.
cp "$scratch/root/usr/lib/postgresql/$major/lib/autoinc.so" \
	"$scratch/root/usr/lib/postgresql/$major/lib/refint.so" "$scratch/"
chmod -R a+rX "$scratch"
[ -z "$as_user" ] || chown -R "$user" "$scratch"

# A data folder beside whose server a daemon runs, instead of the hook.
watched=
way='under the hook'

# under NAME COMMAND…: under the hook, or beside a daemon for $watched; what it prints goes to out/NAME.log, its
# result to $result.
under() {
	name=$1
	shift
	result=0
	began=$(date +%s)
	run="shelflife run --policy temp-vs-rest --name $name --"
	[ -z "$watched" ] || run=
	# shellcheck disable=SC2086 # a list of words, or nothing
	clean_run $run sh "$scratch/bin/regress-inside.sh" "$name" "$scratch/out/$name" "$@" \
		>"$scratch/out/$name.log" 2>&1 </dev/null &
	# Waiting in the shell itself, so that a signal to it is answered at once.
	wait $! || result=$?
	seconds=$(($(date +%s) - began))
	check_hook
}

# --- what is said of a suite -----------------------------------------------------------------------

failed=0
report=
bad() {
	failed=1
	report="$report
  $1"
}

# Sets $hinted and $switches from what regress-inside.sh left, and looks whether the hook was there.
check_hook() {
	counts=$(perl -MJSON::PP -0777 -ne '
		my ($run) = @{decode_json($_)};
		my (%by, $all);
		for (@{$run->{opens}}) {
			next if !defined $_->{lifetime};
			$all += $_->{opens};
			$by{$_->{class}} += $_->{opens};
		}
		my $of = join ", ", map { "$_ $by{$_}" } sort { $by{$b} <=> $by{$a} } keys %by;
		my $refused = join ", ", map { "errno $_->[0] $_->[1] times" } @{$run->{refused}};
		printf "%d;%s;%s\n", $all // 0, $of, $refused;
		' "$scratch/out/$name.status" 2>/dev/null) || counts='0;;'
	hinted=${counts%%;*}
	classes=${counts#*;}
	refused=${classes#*;}
	classes=${classes%;*}
	switches=$(grep -c '^run .* is ' "$scratch/out/$name.switches" || true)
	servers=$(sort -u "$scratch/out/$name.seen" | wc -l)
	report="$report
$name: ${seconds} s; hinted by class: ${classes:-nothing}"
	[ -z "$refused" ] || bad "the kernel refused hints: $refused"
	for class in relation wal; do
		case " $classes" in *" $class "*) ;; *) bad "no file of class $class was hinted" ;; esac
	done
	if [ -n "$watched" ]; then
		check_daemon
	elif [ -s "$scratch/out/$name.bare" ]; then
		bad "server processes without the hook: $(sort -u "$scratch/out/$name.bare" | head -n 5)"
	elif [ "$servers" = 0 ]; then
		bad "no server process was seen"
	else
		report="$report
  $servers server processes were looked at while they ran; each carried the hook"
	fi
	unswitched=$(grep -c '^FAILED' "$scratch/out/$name.switches" || true)
	[ "$unswitched" = 0 ] || bad "$unswitched switches failed: $(
		grep -B 2 '^FAILED' "$scratch/out/$name.switches" | tail -n 6)"
}

# That the daemon lived all the while.
check_daemon() {
	if [ -s "$scratch/out/$name.bare" ]; then
		bad "at some look: $(sort "$scratch/out/$name.bare" | uniq -c | head -n 3)"
	elif [ "$servers" = 0 ]; then
		bad "the daemon was never seen: $(cat "$scratch/out/$name.daemon" 2>/dev/null)"
	fi
	report="$report
  the daemon lived at each of $servers looks; $(perl -MJSON::PP -0777 -ne '
		my ($f) = @{decode_json($_)->[0]{watching}{folders}};
		printf "marks on %s, %d sweeps, %d overflows, %d hints given again to files that had lost theirs",
			@$f{qw(mode sweeps overflows again)};' "$scratch/out/$name.status" 2>/dev/null)"
}

answer() {
	answers="${answers:-}PostgreSQL ${version%%-*} $1 $way: $2; $hinted files were hinted; $switches switches
"
}

# The result of pg_regress and its kin, whose output folder is $2.
pg_regress_answer() {
	log=$scratch/out/$name.log
	total=$(sed -n 's/.*All \([0-9]*\) tests passed.*/\1/p' "$log")
	if [ "$result" = 0 ] && [ -n "$total" ]; then
		answer "$1" "$total of $total tests passed"
		return
	fi
	# Version 15 and older let one test fail by chance ("ignored"); that is not all of them.
	failed=1
	answer "$1" "$(grep -E '[0-9]+ of [0-9]+ tests' "$log" | tr -d '#' | sed 's/^ *//; s/\. *$//' ||
		echo 'it did not run to its end')"
	echo "--- $name"
	grep -E 'FAILED|^not ok|failed' "$log" || tail -n 20 "$log"
	[ ! -s "$2/regression.diffs" ] || head -n 60 "$2/regression.diffs"
}

# TAP tests in folder $2. Those that fail are run again without the hook.
prove_answer() {
	log=$scratch/out/$name.log
	files=$(sed -n 's/^Files=\([0-9]*\),.*/\1/p' "$log")
	tests=$(sed -n 's/^Files=.*, Tests=\([0-9]*\),.*/\1/p' "$log")
	fell=$(sed -n 's/^\(t\/[^ ]*\.pl\) *(Wstat.*/\1/p' "$log" | sort -u)
	skipped=$(sed -n 's/.*\(t\/[^ ]*\.pl\) .*skipped: \(.*\)/\1 (\2)/p' "$log" | sort -u)
	left_out=$(printf '%s' "$skipped" | grep -c '' || true)
	passed=$((${files:-0} - left_out))
	[ -z "$skipped" ] || report="$report
  skipped by the suite: $skipped"
	both=
	for test in $fell; do
		passed=$((passed - 1))
		# What a failed test leaves would make the next try fail as well.
		rm -rf "$scratch/out/tmp_check" "$scratch/out/data"
		if clean_run env perl="$scratch/src/test/perl" sh -c "$prove" "$2" "$test" \
			>"$log.unhooked" 2>&1 </dev/null; then
			bad "$test fails under the hook only"
			echo "--- $test"
			grep -F -A 12 "Failed test" "$log" | head -n 60
		else
			both="$both $test"
		fi
	done
	if [ "$result" != 0 ] && [ -z "$fell" ]; then
		failed=1
		echo "--- $name"
		tail -n 30 "$log"
	fi
	answer "$1" "$passed of ${files:-0} files passed (${tests:-0} tests)${skipped:+, $left_out skipped by the suite}${both:+, not held against the hook, as without it they fail too:$both}"
}

# --- the suites ------------------------------------------------------------------------------------

# A folder for what a suite writes, owned by who runs it.
folder() {
	mkdir "$scratch/out/$1.d"
	[ -z "$as_user" ] || chown "$user" "$scratch/out/$1.d"
	echo "$scratch/out/$1.d"
}

# pg_regress and its kin start a server of their own, with the settings that `make check` uses.
regression() {
	out=$(folder "$1")
	sources=$scratch/src/test/regress
	under "$1" "$pgxs/src/test/regress/pg_regress" --temp-instance="$out/server" \
		--bindir="$bindir" --inputdir="$sources" --outputdir="$out" --dlpath="$scratch" \
		--schedule="$sources/parallel_schedule" --max-concurrent-tests=20
	case " $classes" in *' temp '*) ;; *) bad 'no file of class temp was hinted' ;; esac
	pg_regress_answer 'regression suite' "$out"
}

core() {
	regression core
}

watched() {
	watched=$scratch/out/watched.d/server/data
	way='with the daemon attached'
	regression watched
	watched=
	way='under the hook'
}

decoding() {
	sources=$scratch/contrib/test_decoding
	for kind in regress isolation; do
		out=$(folder "decoding-$kind")
		case $kind in
		regress) list=REGRESS runner=$pgxs/src/test/regress/pg_regress ;;
		isolation) list=ISOLATION runner=$pgxs/src/test/isolation/pg_isolation_regress ;;
		esac
		tests=$(clean_run make -s -C "$sources" USE_PGXS=1 PG_CONFIG="$bindir/pg_config" \
			--no-print-directory --eval="list:; @echo \$($list)" list)
		# shellcheck disable=SC2086 # a list of words
		under "decoding-$kind" "$runner" --temp-instance="$out/server" --bindir="$bindir" \
			--inputdir="$sources" --outputdir="$out" --temp-config="$sources/logical.conf" $tests
		pg_regress_answer "test_decoding ($kind)" "$out"
	done
	tap decoding-tap "$sources" 'test_decoding (TAP)'
}

recovery() {
	tap recovery "$scratch/src/test/recovery" 'recovery tests (TAP)'
}

# prove_in FOLDER TEST…
# shellcheck disable=SC2016 # expanded within
prove='cd "$0" && exec prove --timer -I "$perl" -I . "$@"'
tap() {
	(cd "$2" && ls t/*.pl) >"$scratch/out/$1.list"
	# shellcheck disable=SC2046 # names without blanks
	under "$1" env perl="$scratch/src/test/perl" sh -c "$prove" "$2" $(cat "$scratch/out/$1.list")
	prove_answer "$3" "$2"
}

for suite; do
	case $suite in
	core) core ;;
	watched) watched ;;
	decoding) decoding ;;
	recovery) recovery ;;
	*) stop "no suite $suite" ;;
	esac
done

printf '%s' "$answers"
echo "$report" | sed 1d
exit $failed
