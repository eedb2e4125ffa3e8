// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every write, discard and write-zeroes of the wanted devices at the moment it is issued to the
 * driver, bio by bio, with the file that it belongs to.
 *
 * Invariants. A file is named only if the kernel's own structures lead to it: from a direct write
 * to its `struct file`, from writeback to the page's mapping. A page that is not under writeback
 * is somebody's buffer, and proves nothing. An event that has no room is counted.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define DEV_NAME 32
#define MAX_DEVICES 256
#define MAX_BIOS (1 << 16)
#define MAX_DEPTH 64
#define MAX_NAME 256
#define MAX_PATH 4096

#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFBLK 0060000

/* include/uapi/linux/magic.h */
#define EXT4_SUPER_MAGIC 0xEF53
#define BTRFS_SUPER_MAGIC 0x9123683E
#define F2FS_SUPER_MAGIC 0xF2F52010
/* Reserved: EXT4_GOOD_OLD_FIRST_INO, BTRFS_BTREE_INODE_OBJECTID, F2FS_META_INO. */
#define EXT4_FIRST_INO 11
#define BTRFS_BTREE_INO 1
#define F2FS_FIRST_INO 3

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

/* raw.rs reads these by offset. */
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

struct device_value {
	__u64 diskseq; /* 0: not compared */
	__u32 index;
	__u32 pad;
};

struct file_key {
	__u64 ino;
	__u32 dev;
	__u32 gen;
};

struct retry_value {
	__u64 sector;
	__u64 start;
	__u64 bio;
	__u32 bytes;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 25);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_DEVICES);
	__type(key, char[DEV_NAME]);
	__type(value, struct device_value);
} devices SEC(".maps");

/* Files whose name was sent, with what the name was made of. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, struct file_key);
	__type(value, __u64);
} named SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct retry_value);
} retried SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name);
} scratch SEC(".maps");

/* Addresses of the functions that end a bio, from /proc/kallsyms; 0 if not there. */
const volatile __u64 fn_bio_chain_endio = 0;
const volatile __u64 fn_iomap_dio_bio_end_io = 0;
const volatile __u64 fn_ioend_writeback_end_bio = 0;
const volatile __u64 fn_xfs_end_bio = 0;
const volatile __u64 fn_xfs_buf_bio_end_io = 0;
const volatile __u64 fn_xlog_bio_end_io = 0;
const volatile __u64 fn_end_bio_bh_io_sync = 0;
const volatile __u64 fn_journal_end_buffer_io_sync = 0;
const volatile __u64 fn_ext4_end_buffer_io_sync = 0;
const volatile __u64 fn_btrfs_simple_end_io = 0;
const volatile __u64 fn_btrfs_orig_write_end_io = 0;
const volatile __u64 fn_btrfs_clone_write_end_io = 0;
const volatile __u64 fn_blkdev_bio_end_io = 0;
const volatile __u64 fn_blkdev_bio_end_io_async = 0;

const volatile __u32 page_size = 4096;

__u64 lost = 0;          /* events that found no room */
__u64 flushes = 0;
__u64 zone_appends = 0;  /* their place is known only when they are done */
__u64 retries = 0;       /* requests that a driver gave back and got again */
__u64 waiting = 0;       /* entries of `retried` */

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

static __always_inline bool is(void *function, __u64 address)
{
	return address && (__u64)function == address;
}

static __always_inline unsigned long page_flags(struct page *page)
{
	struct page___word *word = (void *)page;

	if (bpf_core_field_exists(word->flags.f))
		return BPF_CORE_READ(word, flags.f);
	return BPF_CORE_READ(page, flags);
}

/* The first page of a folio has its flags and its mapping; those of the others mean other things. */
static __always_inline struct page *folio_head(struct page *page)
{
	struct page___info *info = (void *)page;
	unsigned long value;

	if (bpf_core_field_exists(info->compound_info)) {
		value = BPF_CORE_READ(info, compound_info);
		if (!(value & 1))
			return page;
		/* a mask has all high bits set, and so has a pointer but for some of them */
		if ((value >> 32) == 0xffffffff)
			return (struct page *)((unsigned long)page & value);
		return (struct page *)(value - 1);
	}
	value = BPF_CORE_READ(page, compound_head);
	return value & 1 ? (struct page *)(value - 1) : page;
}

/* The inode that a page belongs to; if not `any`, only while it is under writeback. */
static __always_inline struct inode *of_page(struct page *page, bool any)
{
	struct address_space *mapping;

	if (!page)
		return 0;
	page = folio_head(page);
	if (!any && !(page_flags(page) >> bpf_core_enum_value(enum pageflags, PG_writeback) & 1))
		return 0;
	mapping = BPF_CORE_READ(page, mapping);
	/* anonymous and movable pages */
	if (!mapping || (unsigned long)mapping & 3)
		return 0;
	return BPF_CORE_READ(mapping, host);
}

static __always_inline struct bio_vec *first_vec(struct bio *bio)
{
	__u32 at = BPF_CORE_READ(bio, bi_iter.bi_idx);
	struct bio_vec *vec = BPF_CORE_READ(bio, bi_io_vec);

	return vec ? (void *)vec + (__u64)at * bpf_core_type_size(struct bio_vec) : 0;
}

/* Bytes of the first vector that are not of this bio. */
static __always_inline __u32 done_of_vec(struct bio *bio)
{
	struct bio___offset *later = (void *)bio;

	if (bpf_core_field_exists(later->bi_iter.bi_offset))
		return BPF_CORE_READ(later, bi_iter.bi_offset);
	return BPF_CORE_READ(bio, bi_iter.bi_bvec_done);
}

static __always_inline struct inode *of_btrfs(struct bio *bio)
{
	struct btrfs_inode *inode;
	struct btrfs_bio *whole;

	if (!bio || !bpf_core_field_exists(struct btrfs_bio, inode) ||
	    !bpf_core_field_exists(struct btrfs_bio, bio) ||
	    !bpf_core_field_exists(struct btrfs_inode, vfs_inode))
		return 0;
	whole = (void *)bio - bpf_core_field_offset(struct btrfs_bio, bio);
	inode = BPF_CORE_READ(whole, inode);
	return inode ? (void *)inode + bpf_core_field_offset(struct btrfs_inode, vfs_inode) : 0;
}

/* Of whom a bio with data is, and the inode if it is a file's. */
static __always_inline struct inode *lookup_owner(struct bio *bio, bool meta, __u8 *whose)
{
	struct bio *own = bio;
	void *end = BPF_CORE_READ(own, bi_end_io);
	struct inode *inode;

	/* what is too large is split, and the parts chained to the whole */
	for (int hop = 0; hop < 4 && is(end, fn_bio_chain_endio); hop++) {
		own = BPF_CORE_READ(own, bi_private);
		end = BPF_CORE_READ(own, bi_end_io);
	}

	/*
	 * Direct first: the pages are the writer's, and may belong to any file (PostgreSQL's shared
	 * buffers are pages of /dev/zero).
	 */
	if (is(end, fn_iomap_dio_bio_end_io)) {
		struct iomap_dio *dio = BPF_CORE_READ(own, bi_private);

		*whose = WHOSE_DIRECT;
		return BPF_CORE_READ(dio, iocb, ki_filp, f_inode);
	}
	if (is(end, fn_blkdev_bio_end_io) || is(end, fn_blkdev_bio_end_io_async)) {
		*whose = WHOSE_RAW;
		return 0;
	}

	*whose = WHOSE_FILE;
	if (bpf_core_field_exists(struct iomap_ioend, io_bio) &&
	    (is(end, fn_ioend_writeback_end_bio) || is(end, fn_xfs_end_bio))) {
		struct iomap_ioend *ioend =
			(void *)own - bpf_core_field_offset(struct iomap_ioend, io_bio);

		return BPF_CORE_READ(ioend, io_inode);
	}
	if (is(end, fn_btrfs_simple_end_io)) {
		inode = of_btrfs(own);
		if (inode)
			return inode;
	} else if (is(end, fn_btrfs_orig_write_end_io) || is(end, fn_btrfs_clone_write_end_io)) {
		struct btrfs_io_stripe *stripe = BPF_CORE_READ(own, bi_private);

		if (bpf_core_field_exists(struct btrfs_io_stripe, bioc)) {
			inode = of_btrfs(BPF_CORE_READ(stripe, bioc, orig_bio));
			if (inode)
				return inode;
		}
	}

	if (is(end, fn_xlog_bio_end_io)) {
		*whose = WHOSE_JOURNAL;
		return 0;
	}
	if (is(end, fn_xfs_buf_bio_end_io)) {
		*whose = WHOSE_METADATA;
		return 0;
	}
	bool buffer = is(end, fn_end_bio_bh_io_sync);
	if (buffer) {
		struct buffer_head *head = BPF_CORE_READ(own, bi_private);
		void *then = BPF_CORE_READ(head, b_end_io);

		/* the page may be a file's (data=journal), the place is the journal's */
		if (is(then, fn_journal_end_buffer_io_sync) || is(then, fn_ext4_end_buffer_io_sync)) {
			*whose = WHOSE_JOURNAL;
			return 0;
		}
	}

	/* single buffers of a block device are written without the flag */
	struct bio_vec *vec = first_vec(bio);
	inode = vec ? of_page(BPF_CORE_READ(vec, bv_page), buffer || meta) : 0;
	if (inode)
		return inode;
	*whose = meta ? WHOSE_METADATA : WHOSE_UNKNOWN;
	return 0;
}

/* Fills in the identity of an inode, and corrects of whom it is. */
static __always_inline void identify(struct inode *inode, struct issuing *c)
{
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);
	unsigned long magic = BPF_CORE_READ(sb, s_magic);
	__u16 format = BPF_CORE_READ(inode, i_mode) & S_IFMT;
	__u64 ino = BPF_CORE_READ(inode, i_ino);

	c->inode = inode;
	c->sb_dev = BPF_CORE_READ(sb, s_dev);
	c->key.dev = c->sb_dev;
	c->key.ino = ino;
	c->key.gen = BPF_CORE_READ(inode, i_generation);
	if (format == S_IFBLK) {
		c->inode_whose = WHOSE_BDEV;
		c->key.dev = BPF_CORE_READ(inode, i_rdev);
		return;
	}
	if (format != S_IFREG || (magic == EXT4_SUPER_MAGIC && ino < EXT4_FIRST_INO) ||
	    (magic == BTRFS_SUPER_MAGIC && ino == BTRFS_BTREE_INO) ||
	    (magic == F2FS_SUPER_MAGIC && ino < F2FS_FIRST_INO)) {
		c->inode_whose = WHOSE_METADATA;
		return;
	}
	c->inode_whose = WHOSE_FILE;
	/* inode numbers of btrfs are each subvolume's own */
	if (magic == BTRFS_SUPER_MAGIC && bpf_core_field_exists(struct btrfs_inode, vfs_inode)) {
		struct btrfs_inode *own =
			(void *)inode - bpf_core_field_offset(struct btrfs_inode, vfs_inode);
		__u32 dev = BPF_CORE_READ(own, root, anon_dev);

		if (dev)
			c->key.dev = dev;
	}
}

struct climb {
	struct dentry *at;
	struct name *out;
	__u32 len;
	bool whole;
};

static long one_component(__u64 step, struct climb *climb)
{
	struct dentry *at = climb->at;
	struct dentry *parent = BPF_CORE_READ(at, d_parent);
	__u32 before = BPF_CORE_READ(at, d_seq.seqcount.sequence);
	__u32 len = climb->len;
	const unsigned char *text;
	long got;

	(void)step;
	if (!parent)
		return 1;
	if (parent == at) {
		climb->whole = true;
		return 1;
	}
	if (len >= MAX_PATH)
		return 1;
	text = BPF_CORE_READ(at, d_name.name);
	got = bpf_probe_read_kernel_str(&climb->out->text[len & (MAX_PATH - 1)], MAX_NAME, text);
	if (got <= 1)
		return 1;
	/* a rename meanwhile would make a path that never was */
	if (before & 1 || BPF_CORE_READ(at, d_seq.seqcount.sequence) != before)
		return 1;
	climb->len = len + got;
	climb->at = parent;
	return 0;
}

static __always_inline struct dentry *of_alias(struct hlist_node *alias)
{
	if (bpf_core_field_exists(struct dentry___alias, d_alias))
		return (void *)alias - bpf_core_field_offset(struct dentry___alias, d_alias);
	return (void *)alias - bpf_core_field_offset(struct dentry, d_u);
}

/* Sends the name of an inode if it was not sent, or changed. */
static __always_inline void name(struct inode *inode, struct issuing *c)
{
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *dentry, *parent;
	struct climb climb = {};
	struct name *out;
	__u64 made_of, *sent;
	__u32 zero = 0;

	if (!alias)
		return;
	dentry = of_alias(alias);
	parent = BPF_CORE_READ(dentry, d_parent);
	made_of = (__u64)dentry ^ ((__u64)parent << 16) ^ BPF_CORE_READ(dentry, d_name.hash_len) ^
		  (BPF_CORE_READ(parent, d_name.hash_len) * 0x9e3779b97f4a7c15ULL);
	sent = bpf_map_lookup_elem(&named, &c->key);
	if (sent && *sent == made_of)
		return;
	out = bpf_map_lookup_elem(&scratch, &zero);
	if (!out)
		return;
	climb.at = dentry;
	climb.out = out;
	bpf_loop(MAX_DEPTH, one_component, &climb, 0);
	if (!climb.whole || climb.len == 0)
		return;
	out->kind = KIND_NAME;
	out->pad = 0;
	out->dev = c->key.dev;
	out->ino = c->key.ino;
	out->gen = c->key.gen;
	out->sb_dev = c->sb_dev;
	__u32 len = climb.len;
	if (len > MAX_PATH + MAX_NAME)
		return;
	out->len = len;
	/* without room it is tried again at the file's next write */
	if (!bpf_ringbuf_output(&events, out, __builtin_offsetof(struct name, text) + len,
				BPF_RB_NO_WAKEUP))
		bpf_map_update_elem(&named, &c->key, &made_of, BPF_ANY);
}

/*
 * The functions that are not static are verified once and by themselves, however often they are
 * called: otherwise a kernel takes seconds to load this.
 */

__noinline int owner(struct issuing *c, __u32 meta)
{
	__u8 whose = WHOSE_UNKNOWN;

	if (!c)
		return WHOSE_UNKNOWN;
	c->found = lookup_owner(c->bio, meta, &whose);
	return whose;
}

/* Of whom the found inode's data are, its name being sent. */
__noinline int settle(struct issuing *c)
{
	if (!c || !c->found)
		return WHOSE_UNKNOWN;
	if (c->found != c->inode)
		identify(c->found, c);
	if (c->inode_whose == WHOSE_FILE)
		name(c->found, c);
	return c->inode_whose;
}

__noinline int emit(struct issuing *c, __u64 sector, __u32 bytes, __u32 whose)
{
	struct issue *e;

	if (!c)
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	e->kind = KIND_ISSUE;
	e->op = c->op;
	e->hint = c->hint;
	e->stream = c->stream;
	e->flags = c->flags;
	e->whose = whose;
	e->device = c->device;
	e->bytes = bytes;
	e->ns = c->ns;
	e->sector = sector;
	e->dev = c->found ? c->key.dev : 0;
	e->ino = c->found ? c->key.ino : 0;
	e->gen = c->found ? c->key.gen : 0;
	e->sb_dev = c->found ? c->sb_dev : 0;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

__noinline int end_run(struct issuing *c)
{
	if (!c)
		return 0;
	c->found = c->run_inode;
	if (c->run_bytes)
		emit(c, c->run_sector, c->run_bytes, settle(c));
	c->run_sector += c->run_bytes >> 9;
	c->run_bytes = 0;
	return 0;
}

static long one_page(__u64 step, struct issuing *c)
{
	struct bio_vec *vec = c->vec;
	struct inode *inode;
	struct page *page;
	__u64 at;
	__u32 length, room;

	(void)step;
	if (!c->left || !vec)
		return 1;
	length = BPF_CORE_READ(vec, bv_len);
	at = (__u64)BPF_CORE_READ(vec, bv_offset) + c->in_vec;
	page = BPF_CORE_READ(vec, bv_page);
	page = (void *)page + at / page_size * bpf_core_type_size(struct page);
	room = page_size - at % page_size;
	length = length > c->in_vec ? length - c->in_vec : 0;
	if (!length)
		return 1;
	if (length > room)
		length = room;
	if (length > c->left)
		length = c->left;
	inode = of_page(page, false);
	if (inode != c->run_inode) {
		end_run(c);
		c->run_inode = inode;
	}
	c->run_bytes += length;
	c->left -= length;
	c->in_vec += length;
	if (c->in_vec >= BPF_CORE_READ(vec, bv_len)) {
		c->vec = (void *)vec + bpf_core_type_size(struct bio_vec);
		c->in_vec = 0;
	}
	return 0;
}

/* Whether pages of several files may stand side by side in one bio. */
static __always_inline bool is_mixed(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_sb, s_magic) == F2FS_SUPER_MAGIC;
}

static long one_bio(__u64 step, struct issuing *c)
{
	struct bio *bio = c->next;
	__u32 whose = WHOSE_UNKNOWN;
	__u32 opf, bytes;
	__u64 sector;
	bool meta;

	(void)step;
	if (!bio)
		return 1;
	c->bio = bio;
	c->next = BPF_CORE_READ(bio, bi_next);
	bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	if (!bytes)
		return 0;
	sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	opf = BPF_CORE_READ(bio, bi_opf);
	meta = opf >> bpf_core_enum_value(enum req_flag_bits, __REQ_META) & 1;
	c->flags = (opf >> bpf_core_enum_value(enum req_flag_bits, __REQ_SYNC) & 1) | meta << 1 |
		   c->fua << 2;
	if (bpf_core_field_exists(bio->bi_write_hint))
		c->hint = BPF_CORE_READ(bio, bi_write_hint);
	else
		c->hint = BPF_CORE_READ((struct bio___short *)bio, bi_write_hint);
	c->stream = 0;
	if (bpf_core_field_exists(bio->bi_write_stream))
		c->stream = BPF_CORE_READ(bio, bi_write_stream);
	c->found = 0;
	if (c->op == 0)
		whose = owner(c, meta);
	if (c->found && whose == WHOSE_FILE && is_mixed(c->found)) {
		c->vec = first_vec(bio);
		c->in_vec = done_of_vec(bio);
		c->left = bytes;
		c->run_inode = c->found;
		c->run_sector = sector;
		c->run_bytes = 0;
		bpf_loop(MAX_BIOS, one_page, c, 0);
		/* what the walk did not reach is not left out */
		if (c->left) {
			end_run(c);
			c->run_inode = 0;
			c->run_bytes = c->left;
		}
		end_run(c);
		return 0;
	}
	if (c->found) {
		__u32 settled = settle(c);

		whose = settled == WHOSE_FILE ? whose : settled;
	}
	emit(c, sector, bytes, whose);
	return 0;
}

static __always_inline struct device_value *wanted(struct request *rq)
{
	struct gendisk *disk = rq->q->disk;
	struct device_value *device;
	char key[DEV_NAME] = {};

	if (!disk)
		return 0;
	if (bpf_core_read_str(key, sizeof(key), &disk->disk_name) < 0)
		return 0;
	device = bpf_map_lookup_elem(&devices, key);
	if (!device)
		return 0;
	/* the name may have gone to another disk since */
	if (device->diskseq && bpf_core_field_exists(disk->diskseq) &&
	    BPF_CORE_READ(disk, diskseq) != device->diskseq)
		return 0;
	return device;
}

/* Whether the driver had this request before, and gave it back. */
static __always_inline bool again(struct request *rq)
{
	__u64 key = (__u64)rq;
	struct retry_value *before;
	bool same;

	if (!waiting)
		return false;
	before = bpf_map_lookup_elem(&retried, &key);
	if (!before)
		return false;
	same = before->bio == (__u64)rq->bio && before->sector == rq->__sector &&
	       before->bytes == rq->__data_len && before->start == rq->start_time_ns;
	if (!bpf_map_delete_elem(&retried, &key))
		__sync_fetch_and_add(&waiting, -1);
	return same;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *rq)
{
	__u32 op = rq->cmd_flags & 0xff;
	struct issuing c = {};
	struct device_value *device;

	if (op == bpf_core_enum_value(enum req_op, REQ_OP_FLUSH)) {
		if (wanted(rq))
			__sync_fetch_and_add(&flushes, 1);
		return 0;
	}
	if (op == bpf_core_enum_value(enum req_op, REQ_OP_WRITE))
		c.op = 0;
	else if (op == bpf_core_enum_value(enum req_op, REQ_OP_DISCARD) ||
		 op == bpf_core_enum_value(enum req_op, REQ_OP_SECURE_ERASE))
		c.op = 1;
	else if (op == bpf_core_enum_value(enum req_op, REQ_OP_WRITE_ZEROES))
		c.op = 2;
	else if (op != bpf_core_enum_value(enum req_op, REQ_OP_ZONE_APPEND))
		return 0;
	device = wanted(rq);
	if (!device)
		return 0;
	if (op == bpf_core_enum_value(enum req_op, REQ_OP_ZONE_APPEND)) {
		__sync_fetch_and_add(&zone_appends, 1);
		return 0;
	}
	if (again(rq)) {
		__sync_fetch_and_add(&retries, 1);
		return 0;
	}
	c.next = rq->bio;
	c.device = device->index;
	c.fua = rq->cmd_flags >> bpf_core_enum_value(enum req_flag_bits, __REQ_FUA) & 1;
	c.ns = bpf_ktime_get_ns();
	bpf_loop(MAX_BIOS, one_bio, &c, 0);
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_requeue, struct request *rq)
{
	__u64 key = (__u64)rq;
	struct retry_value value = {};

	if (!(rq->cmd_flags & 1) || !wanted(rq))
		return 0;
	value.sector = rq->__sector;
	value.start = rq->start_time_ns;
	value.bio = (__u64)rq->bio;
	value.bytes = rq->__data_len;
	if (!bpf_map_update_elem(&retried, &key, &value, BPF_ANY))
		__sync_fetch_and_add(&waiting, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
