// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a file is called: its components from the file up, sent when they are news.
 *
 * Invariant. A path that a rename cut in two while it was read is not sent.
 */
#ifndef SHELFLIFE_NAME_H
#define SHELFLIFE_NAME_H

#include "wire.h"

#define MAX_DEPTH 64

/* Files whose name was sent, with what the name was made of. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, struct file_key);
	__type(value, __u64);
} named SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name);
} scratch SEC(".maps");

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

#endif
