// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every write, discard and write-zeroes of the wanted devices at the moment it is issued to the
 * driver, bio by bio, with the file that it belongs to.
 *
 * Invariant. An event that has no room is counted.
 */
#include "name.h"
#include "owner.h"

#define DEV_NAME 32
#define MAX_DEVICES 256
#define MAX_BIOS (1 << 16)

struct device_value {
	__u64 diskseq; /* 0: not compared */
	__u32 index;
	__u32 pad;
};

struct retry_value {
	__u64 sector;
	__u64 start;
	__u64 bio;
	__u32 bytes;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_DEVICES);
	__type(key, char[DEV_NAME]);
	__type(value, struct device_value);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, struct retry_value);
} retried SEC(".maps");

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
		__sync_fetch_and_add(&counts.lost, 1);
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
	page = (void *)page + at / known.page_size * bpf_core_type_size(struct page);
	room = known.page_size - at % known.page_size;
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

	if (!counts.waiting)
		return false;
	before = bpf_map_lookup_elem(&retried, &key);
	if (!before)
		return false;
	same = before->bio == (__u64)rq->bio && before->sector == rq->__sector &&
	       before->bytes == rq->__data_len && before->start == rq->start_time_ns;
	if (!bpf_map_delete_elem(&retried, &key))
		__sync_fetch_and_add(&counts.waiting, -1);
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
			__sync_fetch_and_add(&counts.flushes, 1);
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
		__sync_fetch_and_add(&counts.zone_appends, 1);
		return 0;
	}
	if (again(rq)) {
		__sync_fetch_and_add(&counts.retries, 1);
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
		__sync_fetch_and_add(&counts.waiting, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
