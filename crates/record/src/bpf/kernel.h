/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel types that the recorder reads. Offsets here mean nothing: libbpf puts in those of
 * the running kernel from its BTF. What follows `___` in a name is not compared, so that a type
 * can stand here in the shapes of several kernels.
 *
 * No kernel header is included: <linux/bpf.h> does not compile for this target on Debian.
 */
#ifndef SHELFLIFE_KERNEL_H
#define SHELFLIFE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __le16;
typedef __u32 __le32;
typedef __u64 __le64;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef _Bool bool;
enum { false = 0, true = 1 };

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_RB_NO_WAKEUP = 1 };

/* include/linux/blk_types.h; the numbers are put in at load. */
enum req_op {
	REQ_OP_WRITE = 1,
	REQ_OP_FLUSH = 2,
	REQ_OP_DISCARD = 3,
	REQ_OP_SECURE_ERASE = 5,
	REQ_OP_ZONE_APPEND = 7,
	REQ_OP_WRITE_ZEROES = 9,
};
enum req_flag_bits { __REQ_SYNC = 11, __REQ_META = 12, __REQ_FUA = 17 };
enum pageflags { PG_writeback = 1 };

/* 6.9 and later: one byte. */
enum rw_hint {
	WRITE_LIFE_NOT_SET,
	WRITE_LIFE_NONE,
	WRITE_LIFE_SHORT,
	WRITE_LIFE_MEDIUM,
	WRITE_LIFE_LONG,
	WRITE_LIFE_EXTREME,
} __attribute__((packed));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
};
struct hlist_head {
	struct hlist_node *first;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};
struct inode {
	__u16 i_mode;
	__u32 i_rdev;
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_generation;
	struct hlist_head i_dentry;
};
struct address_space {
	struct inode *host;
};

struct seqcount_any {
	struct {
		__u32 sequence;
	} seqcount;
};
struct qstr {
	__u64 hash_len;
	const unsigned char *name;
};
struct dentry {
	struct seqcount_any d_seq;
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};
/* 7.3 and later: in a union without a name. */
struct dentry___alias {
	struct hlist_node d_alias;
};

struct page {
	unsigned long flags;
	struct address_space *mapping;
	unsigned long compound_head;
};
/* 6.18 and later: a struct of one word. */
struct page___word {
	struct {
		unsigned long f;
	} flags;
};
/* About 7.1 and later: may hold a mask. */
struct page___info {
	unsigned long compound_info;
};

struct bio_vec {
	struct page *bv_page;
	__u32 bv_len;
	__u32 bv_offset;
};
struct bvec_iter {
	__u64 bi_sector;
	__u32 bi_size;
	__u32 bi_idx;
	__u32 bi_bvec_done;
};
struct bio {
	struct bio *bi_next;
	__u32 bi_opf;
	enum rw_hint bi_write_hint;
	__u8 bi_write_stream;
	struct bvec_iter bi_iter;
	void *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};
/* 7.3 and later: bi_bvec_done has another name. */
struct bvec_iter___offset {
	__u32 bi_offset;
};
struct bio___offset {
	struct bvec_iter___offset bi_iter;
};
/* Up to 5.17. */
struct bio___short {
	__u16 bi_write_hint;
};

struct gendisk {
	char disk_name[32];
	__u64 diskseq;
};
struct request_queue {
	struct gendisk *disk;
};
struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 __data_len;
	__u64 __sector;
	struct bio *bio;
	__u64 start_time_ns;
};

struct file {
	struct inode *f_inode;
};
struct kiocb {
	struct file *ki_filp;
};
/* fs/iomap/direct-io.c */
struct iomap_dio {
	struct kiocb *iocb;
};
/* include/linux/iomap.h */
struct iomap_ioend {
	struct inode *io_inode;
	struct bio io_bio;
};
/* include/linux/buffer_head.h */
struct buffer_head {
	void *b_end_io;
};

/* fs/btrfs */
struct btrfs_root {
	__u32 anon_dev;
};
struct btrfs_inode {
	struct btrfs_root *root;
	struct inode vfs_inode;
};
struct btrfs_bio {
	struct btrfs_inode *inode;
	struct bio bio;
};
struct btrfs_io_context {
	struct bio *orig_bio;
};
struct btrfs_io_stripe {
	struct btrfs_io_context *bioc;
};

#pragma clang attribute pop

#endif
