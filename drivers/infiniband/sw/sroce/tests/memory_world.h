/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the tests of memory/ begin with: a table of keys, two protection domains and some
 * pages, and regions that are made of these.
 */
#ifndef SROCE_TESTS_MEMORY_WORLD_H
#define SROCE_TESTS_MEMORY_WORLD_H

#include <linux/completion.h>
#include <linux/types.h>

#include "memory/mr.h"
#include "memory/mw.h"
#include "memory/pd.h"

struct kunit;
struct task_struct;

#define MAX_PAGES 16

/**
 * struct memory_world - all that a region needs besides itself
 * @table: keys; what is left in it at the end is freed
 * @pd: protection domain of the regions
 * @other_pd: domain of a stranger
 * @qp: what a QP has bound
 * @other_qp: what another one has bound
 * @pages: zeroed memory
 */
struct memory_world {
	struct sroce_mr_table table;
	struct sroce_pd pd;
	struct sroce_pd other_pd;
	struct sroce_mw_list qp;
	struct sroce_mw_list other_qp;
	struct page *pages[MAX_PAGES];
};

/* As init and exit of a suite: test->priv is a struct memory_world */
int memory_world_init(struct kunit *test);
void memory_world_exit(struct kunit *test);

/*
 * A region of single pages in an order in which no two are neighbours, as far
 * as that is up to us: every second page, then the others. It has no rights, and no key.
 */
struct sroce_mr *new_mr(struct kunit *test, enum sroce_mr_kind kind,
			u64 iova, u64 offset, u64 length);

/* One of a process with rights and a key. It may be left to the end of the test */
struct sroce_mr *new_user_mr(struct kunit *test, int access, u64 iova,
			     u64 offset, u64 length);

/* The region that is all memory, of a kernel user; with a key */
struct sroce_mr *new_dma_mr(struct kunit *test, int access);

/* A memory window of the first domain, not bound */
struct sroce_mr *new_window(struct kunit *test, bool type2);

/* The errno of a key check: the same for who uses the region and for who only looks */
int check_key(struct kunit *test, u32 key, const struct ib_pd *pd,
	      int access, u64 va, u64 len);

/* Where the byte of an address is */
void *byte_at(const struct sroce_mr *mr, u64 va);

/**
 * struct copier - somebody who uses regions on another processor, until he is told to stop
 * @w: world
 * @key: of a region, or of nothing
 * @va: first of the bytes that he uses
 * @times: so many elements of a work request name it; 0 is 1
 * @hold: he goes on holding it when he does not use it any more
 * @mr: what he has found, maybe an ERR_PTR
 * @begun: he has
 * @stop: he is to stop
 * @ended: he has
 */
struct copier {
	struct memory_world *w;
	u32 key;
	u64 va;
	int times;
	bool hold;
	struct sroce_mr *mr;
	struct completion begun;
	bool stop;
	struct completion ended;
};

/* He is at it on return; the test is skipped where there is no other processor */
void copier_begin(struct kunit *test, struct copier *copier, u32 key);
void copier_end(struct copier *copier);

/* Start a thread on this processor, and so not on that of a copier, who lets nobody run there */
void run_here(struct task_struct *task);

/* Ranges of all lengths lead to the bytes that byte_at() names, in order */
void expect_ranges(struct kunit *test, const struct sroce_mr *mr);

#endif
