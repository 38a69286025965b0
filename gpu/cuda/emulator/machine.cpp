#include "machine.h"

#include <stdlib.h>
#include <string.h>

#include <string>

Machine machine;

int64_t setting(const char *name, int64_t otherwise) {
	const char *value = getenv((std::string("PIPECTL_EMULATOR_") + name).c_str());
	return value && *value ? atoll(value) : otherwise;
}

bool isSet(const char *name, const char *value) {
	const char *is = getenv((std::string("PIPECTL_EMULATOR_") + name).c_str());
	return is && strcmp(is, value) == 0;
}

bool isFatal(int result) {
	switch (result) {
	case CUDA_ERROR_DEVICE_UNAVAILABLE:
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_UNKNOWN:
		return true;
	}
	return false;
}

bool isIn(const std::map<uint64_t, size_t> &allocations, uint64_t address, size_t n, uint64_t *begin, uint64_t *end) {
	auto a = allocations.upper_bound(address);
	if (a == allocations.begin()) return false;
	--a;
	if (begin) *begin = a->first;
	if (end) *end = a->first + a->second;
	return address - a->first <= a->second && n <= a->second - (address - a->first);
}

bool allocationOf(uint64_t address, size_t n, uint64_t &begin, uint64_t &end) { return isIn(machine.device, address, n, &begin, &end); }

Machine::Machine() : failAt(setting("FAIL", 0)), failWith(CUresult(setting("FAIL_WITH", CUDA_ERROR_INVALID_VALUE))) {}

CUresult Machine::fails(bool needsDevice) {
	if (++calls == failAt) {
		if (isFatal(failWith)) lost = failWith;
		return failWith;
	}
	return needsDevice ? lost : CUDA_SUCCESS;
}

void Machine::book(CUstream s, Engine engine, double seconds) {
	host += 2e-6; // of the call itself
	double start = std::max({host, s->time, engines[engine]});
	s->time = engines[engine] = start + seconds;
}

CUresult Machine::enqueue(CUstream s, Work work) {
	// The null stream and the blocking streams wait for each other.
	if (s == &nullStream) drainAll(true);
	else if (!s->nonBlocking) drain(&nullStream);
	s->queue.push_back(std::move(work));
	s->queued++;
	if (s == &nullStream || isSet("STREAMS", "eager")) return drain(s);
	return lost;
}

CUresult Machine::drain(CUstream s, uint64_t n) {
	while (s->done < n && !s->queue.empty()) {
		Work work = std::move(s->queue.front());
		s->queue.pop_front();
		s->done++;
		if (lost) continue;
		if (int result = work()) lost = CUresult(result);
	}
	return lost;
}

CUresult Machine::drainAll(bool onlyBlocking) {
	drain(&nullStream);
	// All are waited for, so any order is right.
	std::vector<CUstream> order = streams;
	if (isSet("STREAMS", "newest")) std::reverse(order.begin(), order.end());
	for (CUstream s : order)
		if (!onlyBlocking || !s->nonBlocking) drain(s);
	return lost;
}

void Machine::destroyContext() {
	drainAll();
	const int64_t now[] = {int64_t(device.size()), int64_t(pinned.size()), int64_t(streams.size()), int64_t(events.size()), int64_t(modules.size())};
	memcpy(left, now, sizeof left);
	for (auto &a : device) free(reinterpret_cast<void *>(a.first));
	for (auto &a : pinned) free(reinterpret_cast<void *>(a.first));
	for (CUstream s : streams) delete s;
	for (CUevent e : events) delete e;
	device.clear();
	pinned.clear();
	streams.clear();
	events.clear();
	modules.clear(); // their kernels may still be asked for by a handle: they stay
	used = 0;
	lost = CUDA_SUCCESS;
}
