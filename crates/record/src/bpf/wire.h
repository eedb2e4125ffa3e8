// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is sent, through what, and what is known of the request at hand meanwhile. */
#ifndef SHELFLIFE_WIRE_H
#define SHELFLIFE_WIRE_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define MAX_NAME 256
#define MAX_PATH 4096

/* Of whom a write is; raw.rs has the same. */
enum whose {
	WHOSE_UNKNOWN = 0,
	WHOSE_FILE = 1,     /* through the page cache */
	WHOSE_DIRECT = 2,   /* O_DIRECT */
	WHOSE_METADATA = 3, /* the file system's own */
	WHOSE_JOURNAL = 4,
	WHOSE_BDEV = 5,     /* page of a block device: its file system's, or somebody's who writes there */
	WHOSE_RAW = 6,      /* O_DIRECT on a block device */
};

enum record_kind { KIND_ISSUE = 1, KIND_NAME = 2 };

/* ../raw.rs reads these by offset. */
struct issue {
	__u8 kind;
	__u8 op; /* as in the trace: 0 write, 1 discard, 2 write-zeroes */
	__u8 hint;
	__u8 stream;
	__u8 flags; /* 1 sync, 2 meta, 4 FUA */
	__u8 whose;
	__u16 device;
	__u32 bytes;
	__u32 dev;
	__u64 ns;
	__u64 sector;
	__u64 ino;
	__u32 gen;
	__u32 sb_dev;
	char comm[16];
};

struct name {
	__u8 kind;
	__u8 pad;
	__u16 len; /* of text: components from the file up, each ended by NUL */
	__u32 dev;
	__u64 ino;
	__u32 gen;
	__u32 sb_dev;
	char text[MAX_PATH + MAX_NAME];
};

/*
 * What is told before the program is loaded, and the only thing in .rodata. ../object.rs writes it by
 * offset: addresses of the functions that end a bio, from /proc/kallsyms; 0 if not there.
 */
struct known {
	__u64 bio_chain_endio;
	__u64 iomap_dio_bio_end_io;
	__u64 ioend_writeback_end_bio;
	__u64 xfs_end_bio;
	__u64 xfs_buf_bio_end_io;
	__u64 xlog_bio_end_io;
	__u64 end_bio_bh_io_sync;
	__u64 journal_end_buffer_io_sync;
	__u64 ext4_end_buffer_io_sync;
	__u64 btrfs_simple_end_io;
	__u64 btrfs_orig_write_end_io;
	__u64 btrfs_clone_write_end_io;
	__u64 blkdev_bio_end_io;
	__u64 blkdev_bio_end_io_async;
	__u64 page_size;
};

const volatile struct known known = {};

/* What is counted, and the only thing in .bss. ../object.rs reads it by offset. */
struct counts {
	__u64 lost;         /* events that found no room */
	__u64 flushes;
	__u64 zone_appends; /* their place is known only when they are done */
	__u64 retries;      /* requests that a driver gave back and got again */
	__u64 waiting;      /* entries of `retried` */
};

struct counts counts = {};

struct file_key {
	__u64 ino;
	__u32 dev;
	__u32 gen;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 25);
} events SEC(".maps");

struct issuing {
	struct bio *bio;
	struct bio *next;
	__u64 ns;
	/* the inode of what is looked at; NULL if it is nobody's */
	struct inode *found;
	/* of the inode before, which is mostly the same one */
	struct inode *inode;
	struct file_key key;
	__u32 sb_dev;
	__u8 inode_whose;
	__u8 op;
	__u8 fua;
	__u16 device;
	/* of this bio */
	__u8 hint;
	__u8 stream;
	__u8 flags;
	/* of this bio page by page: the run of one inode's pages, and what is ahead */
	__u64 run_sector;
	struct inode *run_inode;
	struct bio_vec *vec;
	__u32 run_bytes;
	__u32 in_vec;
	__u32 left;
};

#endif
