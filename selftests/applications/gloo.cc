// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * gloo RANK FOLDER DEVICE INDEX : one of two ranks, which meet by way of files in FOLDER; the GID is that of INDEX. Collectives
 * over gloo's ibverbs transport, of each of its two kinds: those that are set up once and run again, and those that are called.
 * Every element is compared. Prints a line "ok: WHAT" or "WRONG: WHAT" for each; the status says whether one was wrong.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gloo/allreduce.h"
#include "gloo/allreduce_halving_doubling.h"
#include "gloo/allreduce_ring.h"
#include "gloo/allreduce_ring_chunked.h"
#include "gloo/barrier.h"
#include "gloo/barrier_all_to_all.h"
#include "gloo/broadcast.h"
#include "gloo/broadcast_one_to_all.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/ibverbs/device.h"

using Numbers = std::vector<int64_t>;

static const int RANKS = 2, TURNS = 3;
static int rank, wrong;
static std::shared_ptr<gloo::rendezvous::Context> context;
/* What was set up stays until all is over: a peer may still be writing to its memory */
static std::vector<std::shared_ptr<gloo::Algorithm>> used;

static void check(bool right, const std::string &what)
{
	printf("%s: %s\n", right ? "ok" : "WRONG", what.c_str());
	fflush(stdout);
	wrong += !right;
}

/* Element @i of rank @of in turn @turn */
static int64_t element(int of, int turn, size_t i)
{
	return (of + 1) * 1000003LL * (i + 1) + turn;
}

static void fill(Numbers &numbers, int of, int turn)
{
	for (size_t i = 0; i < numbers.size(); i++)
		numbers[i] = element(of, turn, i);
}

/* What rank 0 has, or with @sum that of all */
static bool holds(const Numbers &numbers, int turn, bool sum)
{
	for (size_t i = 0; i < numbers.size(); i++)
		if (numbers[i] != element(0, turn, i) + (sum ? element(1, turn, i) : 0))
			return false;
	return true;
}

/* In several turns, so that its buffers are used again */
static void run(const std::string &name, Numbers &numbers, bool sum, const std::shared_ptr<gloo::Algorithm> &algorithm)
{
	bool right = true;

	used.push_back(algorithm);
	for (int turn = 0; turn < TURNS; turn++) {
		fill(numbers, rank, turn);
		algorithm->run();
		right = right && holds(numbers, turn, sum);
	}
	check(right, name + ", " + std::to_string(numbers.size()) + " numbers");
}

static void barrier(uint32_t tag)
{
	gloo::BarrierOptions options(context);

	options.setTag(tag);
	gloo::barrier(options);
}

static void called(Numbers &numbers, uint32_t tag)
{
	gloo::AllreduceOptions reduce(context);
	gloo::BroadcastOptions broadcast(context);
	const std::string size = std::to_string(numbers.size()) + " numbers";

	fill(numbers, rank, 0);
	reduce.setOutput(numbers.data(), numbers.size());
	reduce.setTag(tag);
	reduce.setReduceFunction([](void *to, const void *a, const void *b, size_t n) {
		for (size_t i = 0; i < n; i++)
			((int64_t *)to)[i] = ((const int64_t *)a)[i] + ((const int64_t *)b)[i];
	});
	gloo::allreduce(reduce);
	check(holds(numbers, 0, true), "allreduce that is called, " + size);
	barrier(tag + 1);
	fill(numbers, rank, 1);
	broadcast.setOutput(numbers.data(), numbers.size());
	broadcast.setRoot(0);
	broadcast.setTag(tag + 2);
	gloo::broadcast(broadcast);
	check(holds(numbers, 1, false), "broadcast that is called, " + size);
	barrier(tag + 3);
}

static void all(std::vector<Numbers> &memory, size_t size)
{
	const auto &c = context;
	auto numbers = [&]() -> Numbers & { memory.emplace_back(size); return memory.back(); };
	auto pointers = [](Numbers &n) { return std::vector<int64_t *>{ n.data() }; };
	Numbers *n;

	n = &numbers();
	run("allreduce in a ring", *n, true, std::make_shared<gloo::AllreduceRing<int64_t>>(c, pointers(*n), size));
	n = &numbers();
	run("allreduce in a ring of chunks", *n, true,
	    std::make_shared<gloo::AllreduceRingChunked<int64_t>>(c, pointers(*n), size));
	n = &numbers();
	run("allreduce by halving and doubling", *n, true,
	    std::make_shared<gloo::AllreduceHalvingDoubling<int64_t>>(c, pointers(*n), size));
	n = &numbers();
	run("broadcast", *n, false, std::make_shared<gloo::BroadcastOneToAll<int64_t>>(c, pointers(*n), size, 0));
}

int main(int argc, char **argv)
{
	std::vector<Numbers> memory;
	uint32_t tag = 100;

	if (argc != 5)
		return 2;
	rank = atoi(argv[1]);
	try {
		auto store = std::make_shared<gloo::rendezvous::FileStore>(argv[2]);
		auto device = gloo::transport::ibverbs::CreateDevice({ argv[3], 1, atoi(argv[4]) });

		memory.reserve(64);
		context = std::make_shared<gloo::rendezvous::Context>(rank, RANKS);
		context->connectFullMesh(store, device);
		check(true, "ranks that know each other");
		for (size_t size : { 1, 1000, 300000 }) {
			all(memory, size);
			memory.emplace_back(size);
			called(memory.back(), tag);
			tag += 10;
		}
		gloo::BarrierAllToAll(context).run();
		check(true, "barrier");
		/* Nothing of either rank is under way any more */
		barrier(tag);
		used.clear();
	} catch (const std::exception &e) {
		check(false, std::string("what gloo throws: ") + e.what());
	}
	printf("%d wrong\n", wrong);
	return wrong > 0;
}
