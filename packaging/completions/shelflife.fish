# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_shelflife_global_optspecs
    string join \n h/help V/version
end

function __fish_shelflife_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_shelflife_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_shelflife_using_subcommand
    set -l cmd (__fish_shelflife_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c shelflife -n "__fish_shelflife_needs_command" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_needs_command" -s V -l version -d 'Print version'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "run" -d 'Start a program under hints'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "watch" -d 'Hint a running server from outside, without a restart'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "status" -d 'Show runs, their counters, and whether the hook is really loaded'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "switch" -d 'Switch hints off, on, or to another policy while the server runs'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "apply" -d 'Set or clear hints on the files that exist now'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "hint" -d 'Read, set or clear the hint of files'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "policy" -d 'List, show, check and explain policies'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "doctor" -d 'Does a hint set here reach the flash, layer by layer'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "prove" -d 'Write with every hint and show what arrives at the drive'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "trial" -d 'Compare policies on a real server, in paired rounds'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "atlas" -d 'Scenarios, policies and drives in one table: best and worst cases'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "record" -d 'Record what is written to a drive, with hint and file'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "import" -d 'Make a trace of a recording in another format'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "export" -d 'Write a trace in another format'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "trace" -d 'Look at a trace, check, cut, anonymise, merge and summarise it'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "lifetimes" -d 'How long what is written lives, by class of file, relation, file or process'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "generate" -d 'Write man pages and completions'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "simulate" -d 'What write amplification drives would have under policies, for a trace or a workload'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "learn" -d 'The policy that suits a trace and drives, judged on what it has not seen'
complete -c shelflife -n "__fish_shelflife_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shelflife -n "__fish_shelflife_using_subcommand run" -l policy -d 'A shipped policy or the path of a policy file' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand run" -l name -d 'The run\'s name for `switch` and `status` (default: the lowest free number)' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand run" -l dry-run -d 'Count the files that would be hinted, hint none'
complete -c shelflife -n "__fish_shelflife_using_subcommand run" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand watch" -l policy -d 'A shipped policy or the path of a policy file (default: wal-first)' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand watch" -l layout -d 'What the policy must be for (default: what it says)' -r -f -a "postgres\t'PostgreSQL data folders'
paths\t'Plain folders, for policies of layout "paths"'"
complete -c shelflife -n "__fish_shelflife_using_subcommand watch" -l config -d 'Folders and all the rest from a file' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand watch" -l mode -d 'How opens are seen' -r -f -a "auto\t'`filesystem` if allowed (CAP_SYS_ADMIN), else `folders`'
folders\t'Marks on every folder: no rights but the owner\'s'
filesystem\t'Marks on whole file systems'"
complete -c shelflife -n "__fish_shelflife_using_subcommand watch" -l name -d 'The run\'s name for `switch` and `status` (default: the lowest free number)' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand watch" -l relations -d 'Read the servers\' catalogs, so that rules for one relation and for the classes index, toast and unlogged apply; as this role (default: named like the files\' owner)' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand watch" -l dry-run -d 'Count the files that would be hinted, hint none'
complete -c shelflife -n "__fish_shelflife_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shelflife -n "__fish_shelflife_using_subcommand status" -l run -d 'Only this run' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand status" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand status" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand switch" -l run -d 'The run to switch, if there are several' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand switch" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand switch" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand apply" -l policy -d 'A shipped policy or the path of a policy file' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand apply" -l clear -d 'Take all hints away'
complete -c shelflife -n "__fish_shelflife_using_subcommand apply" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand apply" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and not __fish_seen_subcommand_from get set clear help" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and not __fish_seen_subcommand_from get set clear help" -f -a "get" -d 'Print the hint that each file carries'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and not __fish_seen_subcommand_from get set clear help" -f -a "set" -d 'Set it'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and not __fish_seen_subcommand_from get set clear help" -f -a "clear" -d 'Set it back to not-set'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and not __fish_seen_subcommand_from get set clear help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from get" -s r -l recursive -d 'All regular files below the folders, following no links'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from get" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from set" -s r -l recursive -d 'All regular files below the folders, following no links'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from set" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from clear" -s r -l recursive -d 'All regular files below the folders, following no links'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from clear" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from clear" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from help" -f -a "get" -d 'Print the hint that each file carries'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from help" -f -a "set" -d 'Set it'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from help" -f -a "clear" -d 'Set it back to not-set'
complete -c shelflife -n "__fish_shelflife_using_subcommand hint; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and not __fish_seen_subcommand_from list show check explain help" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and not __fish_seen_subcommand_from list show check explain help" -f -a "list" -d 'The policies that come along'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and not __fish_seen_subcommand_from list show check explain help" -f -a "show" -d 'What a policy gives each class of file, and why'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and not __fish_seen_subcommand_from list show check explain help" -f -a "check" -d 'Errors and doubtful rules, with line and column; exit code 1 if there are any'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and not __fish_seen_subcommand_from list show check explain help" -f -a "explain" -d 'What would these paths get, and why'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and not __fish_seen_subcommand_from list show check explain help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from list" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from show" -l source -d 'The text as it is, comments and all: a start for one of your own'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from show" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from check" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from explain" -l policy -d 'A shipped policy or the path of a policy file' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from explain" -l pgdata -d 'The data folder that absolute paths lie in (default: found above the path, if it exists)' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from explain" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "list" -d 'The policies that come along'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "show" -d 'What a policy gives each class of file, and why'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "check" -d 'Errors and doubtful rules, with line and column; exit code 1 if there are any'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "explain" -d 'What would these paths get, and why'
complete -c shelflife -n "__fish_shelflife_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shelflife -n "__fish_shelflife_using_subcommand doctor" -l pgdata -d 'A server\'s data folder: it, its WAL folder and its tablespaces' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand doctor" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand prove" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand prove" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l policies -d 'The arms, the first being the base: off, shipped policies, paths of policy files' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l preset -d 'Defaults for all that follows' -r -f -a "standard\t'Eight blocks of two-minute rounds on 0.75 GB'
quick\t'At most a minute of load: an interval, never a verdict'
classic\t'pgbench -s 200 -i, pgbench -T 600 -c 2 -j 2, max_wal_size 4 GB'"
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l dir -d 'Folder for the cluster and the results, on the drive that is meant (default: a new one in /var/tmp)' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l dsn -d 'A running server instead of a cluster of its own: it must be under the hook, and local' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l own-database -d 'The database that the trial makes on the running server, and drops' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l rounds -d 'Blocks: each arm runs once in each' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l seconds -d 'Length of a round' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l scale -d 'pgbench\'s scale, 15 MB each' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l clients -d 'Connections' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l jobs -d 'Threads of pgbench' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l rate -d 'Transactions to start per second; compares the mean latency instead of tps' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l script -d 'A pgbench script and its weight, or simple-update or select-only, instead of tpcb-like; may be repeated' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l scenario -d 'A scenario: tpcb, spill, bulk-load, rewrite, timeseries, queue, random-index, freeze, unlogged, wal-share, wal-retained, wal-no-recycle; or the path of a folder (docs/trial.md)' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l fs -d 'Make a file system for the cluster, in a file on a loop device: needs root' -r -f -a "ext4\t'ext4'
xfs\t'XFS'
btrfs\t'btrfs'
f2fs\t'f2fs'"
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l size -d 'Its size' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l device -d 'Make it on this whole device instead, anew for each round, which is an epoch: all of the device is trimmed, then written three times over, and write amplification measured by the drive\'s own counters. All that is on it is lost; it must be empty (docs/trial.md)' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l fill -d 'Fill it with cold data up to so much before the rounds: write amplification is a matter of fill' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l dirty -d 'Let it have no more dirty pages than this, so that temporary files reach the drive' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l mount-options -d 'How it is mounted' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l set -d 'A setting of the trial\'s own server; may be repeated' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l seed -d 'Seed of the order and of pgbench, to repeat a trial' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l pg-bindir -d 'Where PostgreSQL\'s programs are' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l user -d 'Who runs the server, if started by root (default: postgres)' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l record -d 'Record the block writes of all rounds into this folder, a trace each (docs/record.md)' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l try-record -d 'The same where this machine can record; else go on without, and say so' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l resume -d 'Go on with the trial in this folder, as it was planned' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l read -d 'Only show what these results say: a file, or a trial\'s folder' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l html -d 'Write the answer as an HTML page too: one file, with pictures' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -s y -l yes -d 'Go on without asking how much will be written'
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l keep -d 'Keep the cluster, stopped'
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand trial" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l scenarios -d 'Scenarios, NAME or NAME:VARIANT, or folders of your own, with a / [default: all that come along]' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l drives -d 'Shipped drives or paths of profiles (docs/simulate.md) [default: ufs-5-groups, fdp-8-initial, warp-samsung]' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l transport -d 'How a hint becomes a stream on the way to the drives [default: what each profile says]' -r -f -a "unhinted\t'Nothing arrives'
nvme-raw\t'A whole NVMe device without file system'
scsi\t'SCSI and UFS groups'
f2fs-fdp\t'f2fs on FDP: a model'
f2fs-scsi\t'f2fs on SCSI or UFS: a model'
ideal\t'A stream for each lifetime'"
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l fs -d 'The file system' -r -f -a "ext4\t'ext4'
xfs\t'XFS'
btrfs\t'btrfs'
f2fs\t'f2fs'"
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l size -d 'Its size; drives are scaled to it' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l fill -d 'How full it is at the most, cold data included' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l writes -d 'A recording ends once the size has been written so many times' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l seconds -d 'or after so many seconds' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l user -d 'The user who runs the servers [default: postgres, or nobody]' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l pg-bindir -d 'Where PostgreSQL\'s programs are' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l html -d 'Write it as one HTML page too, which needs no network' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l yes -d 'Go on without asking where the file system does not fit into memory'
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand atlas" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -s o -l output -d 'The trace: a folder that does not exist yet' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -l device -d 'Record this device, or those below it; of a partition the whole drive' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -l path -d 'Record the devices that this file or folder lies on' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -l for -d 'End after this time: 90s, 10min, 2h' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -l max-bytes -d 'End before the trace takes more than this: 500MB, 2GiB' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -l policy -d 'The policy that hints come from, to be noted in the trace' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -l pg -d 'Name relations as PostgreSQL\'s catalogs do: of every server whose files are written (auto, by its socket and as its owner), or of the one at this address' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand record" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -s o -l output -d 'The new trace, a folder that does not exist' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -l format -d 'The format, where it cannot be told' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -l shift -d 'Added to every offset, in bytes' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -l size -d 'The size of the device: nothing may end beyond it (64GiB, 500GB, …)' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -l volume -d 'Only this device or volume' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -l time-unit -d 'The unit of times in mqsim: ps, ns, us, ms or s' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -l skip-bad -d 'Skip and count bad lines'
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand import" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand export" -l to -d 'alibaba or csv' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand export" -s o -l output -d 'Where to (default: standard output)' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand export" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and not __fish_seen_subcommand_from info check head cut merge summary help" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and not __fish_seen_subcommand_from info check head cut merge summary help" -f -a "info" -d 'Where a trace comes from, and what was counted'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and not __fish_seen_subcommand_from info check head cut merge summary help" -f -a "check" -d 'Read all of it and compare with what it says of itself; exit code 1 if something is wrong'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and not __fish_seen_subcommand_from info check head cut merge summary help" -f -a "head" -d 'The first events'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and not __fish_seen_subcommand_from info check head cut merge summary help" -f -a "cut" -d 'A part of a trace as a new one, perhaps without names'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and not __fish_seen_subcommand_from info check head cut merge summary help" -f -a "merge" -d 'Several traces as a new one, in the order of time'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and not __fish_seen_subcommand_from info check head cut merge summary help" -f -a "summary" -d 'Bytes, writes, sequentiality, overwrites and distinct pages by class, relation, hint, process'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and not __fish_seen_subcommand_from info check head cut merge summary help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from info" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from check" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from head" -s n -l events -d 'How many events' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from head" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from head" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from cut" -s o -l output -d 'The new trace' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from cut" -l time -d 'From and to since the beginning, the end not included: 60s..120s, 1500ms.., ..2min' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from cut" -l offset -d 'Events that begin in these bytes of the device: 0..10GiB' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from cut" -l device -d 'Only this device, by its number in `trace info`' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from cut" -l anonymize -d 'Replace paths, names of relations, databases, tablespaces and devices; classes stay, and so do the names of processes'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from cut" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from cut" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from merge" -s o -l output -d 'The new trace' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from merge" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from merge" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from summary" -l top -d 'Lines of each table; all of them in JSON' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from summary" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from summary" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "info" -d 'Where a trace comes from, and what was counted'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "check" -d 'Read all of it and compare with what it says of itself; exit code 1 if something is wrong'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "head" -d 'The first events'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "cut" -d 'A part of a trace as a new one, perhaps without names'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "merge" -d 'Several traces as a new one, in the order of time'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "summary" -d 'Bytes, writes, sequentiality, overwrites and distinct pages by class, relation, hint, process'
complete -c shelflife -n "__fish_shelflife_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shelflife -n "__fish_shelflife_using_subcommand lifetimes" -l by -d 'What to tell apart' -r -f -a "class\t'Class of file'
relation\t'Relation, where a catalog named it'
file\t'File'
process\t'Process that issued the write'"
complete -c shelflife -n "__fish_shelflife_using_subcommand lifetimes" -l sample -d 'Follow one page in so many, chosen by its address: for traces of large drives' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand lifetimes" -l top -d 'Lines to show' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand lifetimes" -l csv -d 'The survival curves as CSV'
complete -c shelflife -n "__fish_shelflife_using_subcommand lifetimes" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand lifetimes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shelflife -n "__fish_shelflife_using_subcommand generate" -s h -l help -d 'Print help'
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l workload -d 'uniform, zipf:S, hotcold:SPACE/TRAFFIC, sequential or log+random:SHARE/SPACE (shares of the pages and of the writes, in percent)' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l pages -d 'Pages of the workload, of 4 KiB unless the drive has others' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l overwrites -d 'How often as many pages are written; the second half counts' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l seed -d 'Seed of the workload' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l hints -d 'exact, off or flip:EPS, for workloads of two classes; may be repeated [default: exact]' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l policy -d 'off, recorded, a shipped policy or the path of a policy file; may be repeated [default: off, and recorded if the trace has hints]' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l drive -d 'A shipped drive or the path of a profile (docs/simulate.md); may be repeated' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l op -d 'Over-provisioning of a drive as large as what is written; the options below are its rules' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l ru-pages -d 'Pages of its reclaim units' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l streams -d 'Its streams' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l isolation -d 'Whether copied data of all streams share units' -r -f -a "initial\t'Copied data of all streams share units'
persistent\t'Copied data stay with their stream'"
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l victim -d 'Which unit is collected next' -r -f -a "greedy\t'The emptiest unit'
cost-benefit\t'Emptiness and age'
fifo\t'The oldest unit'
quota\t'The emptiest unit of the stream that holds most above its share'"
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l frontier -d 'Whether copied data have open units of their own' -r -f -a "separate\t'Copied data never share an open unit with new data'
single\t'They do'"
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l transport -d 'How a hint becomes a stream' -r -f -a "unhinted\t'Nothing arrives'
nvme-raw\t'A whole NVMe device without file system'
scsi\t'SCSI and UFS groups'
f2fs-fdp\t'f2fs on FDP: a model'
f2fs-scsi\t'f2fs on SCSI or UFS: a model'
ideal\t'A stream for each lifetime'"
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l fit -d 'Scale drives so that what is written is LIVE percent of them [default: as the recorded file system was]' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l live -d 'Drives in their own size, LIVE percent of which hold data' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l repeat -d 'Loop the trace until write amplification is steady'
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand simulate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -s o -l output -d 'Where the policy is written; must not exist' -r -F
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l transport -d 'How a hint becomes a stream on the way to the drive, whatever its profile says' -r -f -a "unhinted\t'Nothing arrives'
nvme-raw\t'A whole NVMe device without file system'
scsi\t'SCSI and UFS groups'
f2fs-fdp\t'f2fs on FDP: a model'
f2fs-scsi\t'f2fs on SCSI or UFS: a model'
ideal\t'A stream for each lifetime'"
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l drive -d 'A shipped drive or the path of a profile (docs/simulate.md); may be repeated' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l applier -d 'Who will set the hints' -r -f -a "hook\t'`shelflife run`: it knows paths, so that an index is a relation'
watch\t'`shelflife watch`: it reads the catalog'"
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l for -d 'What to be best at: mean (over all rules and isolations, and bad on none), worst (of them), or the name of one of the drives, by its own rules' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l fit -d 'Scale drives so that what is written is LIVE percent of them [default: as the recorded file system was]' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l live -d 'Drives in their own size, LIVE percent of which hold data' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l seed -d 'Seed of the sample that is searched on, and of hints dealt at random' -r
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l relations -d 'Rules for single relations too (with --applier watch)'
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -l json -d 'Machine-readable'
complete -c shelflife -n "__fish_shelflife_using_subcommand learn" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "run" -d 'Start a program under hints'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "watch" -d 'Hint a running server from outside, without a restart'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "status" -d 'Show runs, their counters, and whether the hook is really loaded'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "switch" -d 'Switch hints off, on, or to another policy while the server runs'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "apply" -d 'Set or clear hints on the files that exist now'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "hint" -d 'Read, set or clear the hint of files'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "policy" -d 'List, show, check and explain policies'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "doctor" -d 'Does a hint set here reach the flash, layer by layer'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "prove" -d 'Write with every hint and show what arrives at the drive'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "trial" -d 'Compare policies on a real server, in paired rounds'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "atlas" -d 'Scenarios, policies and drives in one table: best and worst cases'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "record" -d 'Record what is written to a drive, with hint and file'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "import" -d 'Make a trace of a recording in another format'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "export" -d 'Write a trace in another format'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "trace" -d 'Look at a trace, check, cut, anonymise, merge and summarise it'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "lifetimes" -d 'How long what is written lives, by class of file, relation, file or process'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "generate" -d 'Write man pages and completions'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "simulate" -d 'What write amplification drives would have under policies, for a trace or a workload'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "learn" -d 'The policy that suits a trace and drives, judged on what it has not seen'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and not __fish_seen_subcommand_from run watch status switch apply hint policy doctor prove trial atlas record import export trace lifetimes generate simulate learn help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from hint" -f -a "get" -d 'Print the hint that each file carries'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from hint" -f -a "set" -d 'Set it'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from hint" -f -a "clear" -d 'Set it back to not-set'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "list" -d 'The policies that come along'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "show" -d 'What a policy gives each class of file, and why'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "check" -d 'Errors and doubtful rules, with line and column; exit code 1 if there are any'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "explain" -d 'What would these paths get, and why'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "info" -d 'Where a trace comes from, and what was counted'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "check" -d 'Read all of it and compare with what it says of itself; exit code 1 if something is wrong'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "head" -d 'The first events'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "cut" -d 'A part of a trace as a new one, perhaps without names'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "merge" -d 'Several traces as a new one, in the order of time'
complete -c shelflife -n "__fish_shelflife_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "summary" -d 'Bytes, writes, sequentiality, overwrites and distinct pages by class, relation, hint, process'
