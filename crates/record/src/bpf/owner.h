// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Of whom a bio is.
 *
 * Invariant. A file is found only if the kernel's own structures lead to it: from a direct write to
 * its `struct file`, from writeback to the page's mapping. A page that is not under writeback is
 * somebody's buffer, and proves nothing.
 */
#ifndef SHELFLIFE_OWNER_H
#define SHELFLIFE_OWNER_H

#include "wire.h"

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
	for (int hop = 0; hop < 4 && is(end, known.bio_chain_endio); hop++) {
		own = BPF_CORE_READ(own, bi_private);
		end = BPF_CORE_READ(own, bi_end_io);
	}

	/*
	 * Direct first: the pages are the writer's, and may belong to any file (PostgreSQL's shared
	 * buffers are pages of /dev/zero).
	 */
	if (is(end, known.iomap_dio_bio_end_io)) {
		struct iomap_dio *dio = BPF_CORE_READ(own, bi_private);

		*whose = WHOSE_DIRECT;
		return BPF_CORE_READ(dio, iocb, ki_filp, f_inode);
	}
	if (is(end, known.blkdev_bio_end_io) || is(end, known.blkdev_bio_end_io_async)) {
		*whose = WHOSE_RAW;
		return 0;
	}

	*whose = WHOSE_FILE;
	if (bpf_core_field_exists(struct iomap_ioend, io_bio) &&
	    (is(end, known.ioend_writeback_end_bio) || is(end, known.xfs_end_bio))) {
		struct iomap_ioend *ioend =
			(void *)own - bpf_core_field_offset(struct iomap_ioend, io_bio);

		return BPF_CORE_READ(ioend, io_inode);
	}
	if (is(end, known.btrfs_simple_end_io)) {
		inode = of_btrfs(own);
		if (inode)
			return inode;
	} else if (is(end, known.btrfs_orig_write_end_io) || is(end, known.btrfs_clone_write_end_io)) {
		struct btrfs_io_stripe *stripe = BPF_CORE_READ(own, bi_private);

		if (bpf_core_field_exists(struct btrfs_io_stripe, bioc)) {
			inode = of_btrfs(BPF_CORE_READ(stripe, bioc, orig_bio));
			if (inode)
				return inode;
		}
	}

	if (is(end, known.xlog_bio_end_io)) {
		*whose = WHOSE_JOURNAL;
		return 0;
	}
	if (is(end, known.xfs_buf_bio_end_io)) {
		*whose = WHOSE_METADATA;
		return 0;
	}
	bool buffer = is(end, known.end_bio_bh_io_sync);
	if (buffer) {
		struct buffer_head *head = BPF_CORE_READ(own, bi_private);
		void *then = BPF_CORE_READ(head, b_end_io);

		/* the page may be a file's (data=journal), the place is the journal's */
		if (is(then, known.journal_end_buffer_io_sync) || is(then, known.ext4_end_buffer_io_sync)) {
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

#endif
