// The emulated GPU: its memory, its streams, its clock, and the faults that tests plan for it.
#pragma once
#include <stdint.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

extern "C" {
#include "../driver/include/cuda.h"
}

using Work = std::function<int()>; // returns a CUresult

// Stream is a queue of work, which is done as late as the driver's rules allow: when a call waits for it, or when other
// work does by an event. So a wait that is missing gives wrong numbers in every run, not now and then.
struct CUstream_st {
	bool nonBlocking = false;
	std::deque<Work> queue;
	uint64_t queued = 0, done = 0; // pieces of work so far
	double time = 0;               // when what is queued ends, in virtual seconds
};

struct CUevent_st {
	bool timed = true;
	CUstream stream = nullptr; // null before it is recorded
	uint64_t after = 0;        // the stream's pieces of work before it
	double time = 0;
};

// An Engine does one thing at a time. Copies in both directions and kernels overlap.
enum Engine { ToDevice, ToHost, Compute, Engines };

struct Machine {
	std::recursive_mutex mutex;
	bool initialized = false;
	int retained = 0; // the primary context's count
	std::map<uint64_t, size_t> device, pinned; // allocations: sizes by address
	std::vector<CUstream> streams; // the oldest first
	std::set<CUevent> events;
	std::set<CUmodule> modules;
	CUstream_st nullStream;
	uint64_t used = 0; // bytes of device memory
	double host = 0;   // the virtual time of the calling program
	double engines[Engines] = {};
	CUresult lost = CUDA_SUCCESS; // what every call returns after a fault of the device

	// Planned by tests.
	int64_t calls = 0, failAt = 0; // the call that fails, counted from 1; 0 is none
	CUresult failWith = CUDA_SUCCESS;
	// What was left when the context went, by kind.
	int64_t left[5] = {};

	Machine();
	// fails counts a call, and returns the fault that is planned for it or that has happened.
	CUresult fails(bool needsDevice);
	bool has(CUstream s) { return s == &nullStream || std::find(streams.begin(), streams.end(), s) != streams.end(); }
	// book adds work that takes seconds on an engine to a stream's time.
	void book(CUstream s, Engine engine, double seconds);
	CUresult enqueue(CUstream s, Work work);
	// drain does the work of a stream up to its n-th piece, or all of it.
	CUresult drain(CUstream s, uint64_t n = ~uint64_t(0));
	CUresult drainAll(bool onlyBlocking = false);
	// destroyContext frees everything and notes what had been left.
	void destroyContext();
};

extern Machine machine;

// setting returns the value of an environment variable PIPECTL_EMULATOR_name, or otherwise.
int64_t setting(const char *name, int64_t otherwise);
bool isSet(const char *name, const char *value);

// isFatal tells the results after which a context is lost.
bool isFatal(int result);

// isIn reports whether n bytes at an address lie in one of the allocations, and where that one lies.
bool isIn(const std::map<uint64_t, size_t> &allocations, uint64_t address, size_t n, uint64_t *begin = nullptr, uint64_t *end = nullptr);

// allocationOf is isIn for the device's memory.
bool allocationOf(uint64_t address, size_t n, uint64_t &begin, uint64_t &end);
