// An emulated libcuda.so.1 for tests: the driver calls a training step uses, on the CPU.
//
// Streams are queues that run as LATE as allowed (at a synchronizing call, or when an
// event they must wait for is needed), so a missing event wait or a host buffer that is
// reused too early gives wrong numbers every time, not now and then.  PIPECTL_EMULATOR_MODE=eager
// runs each operation at once.  Event times come from a virtual clock with one H2D copy
// engine, one D2H copy engine and one compute engine, so that overlap can be tested.
#include "emulator.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>
#include "ptx.h"

typedef int R; // CUresult
enum { OK = 0, INVALID = 1, OOM = 2, NOTINIT = 3, NODEV = 100, BADIMAGE = 200, BADCTX = 201, BADHANDLE = 400, NOTFOUND = 500, NOTREADY = 600, ILLADDR = 700, LAUNCH = 719 };
typedef uint64_t Dptr;
#define API extern "C" __attribute__((visibility("default"))) R
int emu_run(const emu_kernel *, emu_dim3, emu_dim3, size_t, void **);

struct Ctx { int dev; };
struct Event;
struct Stream { bool nonblocking; std::deque<std::function<R()>> q; double vt = 0; uint64_t enq = 0, ran = 0; };
struct Event { Stream *s = 0; uint64_t at = 0; bool recorded = false; double vt = 0; };
struct Module { std::string ptx; std::map<std::string, ptxi::Kernel *> k; };
struct Func { std::string name; const emu_kernel *native; ptxi::Kernel *ptx; std::vector<size_t> sizes; };

static std::recursive_mutex mu;
#define LOCK std::lock_guard<std::recursive_mutex> lk(mu)
static bool inited;
static thread_local Ctx *current;
static std::set<Ctx *> ctxs;
static std::set<Stream *> streams;
static Stream null_stream;
std::map<Dptr, size_t> dev_mem, pinned; // base -> size
static size_t dev_used, dev_cap = 1ull << 30;
static R sticky;
static struct { long launches, async_pinned, async_pageable, sync_copies, dev_peak, errors; } st;
static double hv, eng[3]; // virtual seconds: host, engines H2D / D2H / compute
static const char *mode() { static const char *m = getenv("PIPECTL_EMULATOR_MODE"); return m ? m : "lazy"; }
static bool use_ptx() { static const char *b = getenv("PIPECTL_EMULATOR_BACKEND"); return b && !strcmp(b, "ptx"); }

static bool inside(const std::map<Dptr, size_t> &m, Dptr p, size_t n) {
	auto it = m.upper_bound(p);
	if (it == m.begin()) return false;
	--it;
	return p >= it->first && p + n <= it->first + it->second;
}
bool emu_dev_ok(Dptr p, size_t n) { return inside(dev_mem, p, n); }

static R run_to(Stream *s, uint64_t at) {
	R r = OK;
	while (s->ran < at && !s->q.empty()) {
		auto f = std::move(s->q.front());
		s->q.pop_front();
		s->ran++;
		R e = f();
		if (e && !sticky) sticky = e;
		if (e) { r = e; st.errors++; }
	}
	return sticky ? sticky : r;
}
static R drain(Stream *s) { return run_to(s, s->enq); }
static R drain_all(bool blocking_only) {
	drain(&null_stream);
	for (auto s : streams) if (!blocking_only || !s->nonblocking) drain(s);
	return sticky;
}
static Stream *S(void *h) { return h ? (Stream *)h : &null_stream; }
static double cost(int e, double dur, Stream *s) { // books an operation on an engine
	hv += 2e-6;
	double t = hv > s->vt ? hv : s->vt;
	if (eng[e] > t) t = eng[e];
	s->vt = eng[e] = t + dur;
	return s->vt;
}
static R enqueue(void *h, std::function<R()> f) {
	if (h && !streams.count((Stream *)h)) return BADHANDLE;
	Stream *s = S(h);
	if (s == &null_stream) drain_all(true); // legacy stream: after all blocking streams
	else if (!s->nonblocking) drain(&null_stream);
	s->q.push_back(std::move(f));
	s->enq++;
	if (s == &null_stream || !strcmp(mode(), "eager")) return drain(s);
	return sticky;
}
#define NEED if (!inited) return NOTINIT; LOCK; if (!current || !ctxs.count(current)) return BADCTX; if (sticky) return sticky

API cuInit(unsigned f) { LOCK; if (f) return INVALID; if (getenv("PIPECTL_EMULATOR_NODEVICE")) return NODEV; inited = true; return OK; }
API cuDriverGetVersion(int *v) { *v = 11080; return OK; }
API cuDeviceGetCount(int *n) { if (!inited) return NOTINIT; *n = 1; return OK; }
API cuDeviceGet(int *d, int i) { if (!inited) return NOTINIT; if (i) return 101; *d = 0; return OK; }
API cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "emulated GPU"); return OK; }
API cuDeviceTotalMem_v2(size_t *b, int d) { *b = dev_cap; return OK; }
API cuDeviceGetAttribute(int *v, int a, int d) {
	switch (a) { case 1: case 2: case 3: *v = 1024; break; case 4: *v = 64; break; case 5: *v = 0x7fffffff; break; case 6: case 7: *v = 65535; break;
	case 8: *v = 49152; break; case 10: *v = 32; break; case 16: *v = 1; break; case 40: *v = 2; break; case 75: *v = 8; break; case 76: *v = 0; break; default: *v = 0; }
	return OK;
}
static Ctx primary;
API cuCtxCreate_v2(Ctx **c, unsigned, int d) { if (!inited) return NOTINIT; LOCK; *c = new Ctx{d}; ctxs.insert(*c); current = *c; return OK; }
API cuCtxDestroy_v2(Ctx *c) { LOCK; if (!ctxs.erase(c)) return BADCTX; drain_all(false); if (current == c) current = 0; return OK; }
API cuDevicePrimaryCtxRetain(Ctx **c, int d) { if (!inited) return NOTINIT; LOCK; ctxs.insert(&primary); *c = &primary; return OK; }
API cuDevicePrimaryCtxRelease_v2(int d) { LOCK; drain_all(false); ctxs.erase(&primary); return OK; }
API cuCtxSetCurrent(Ctx *c) { LOCK; if (c && !ctxs.count(c)) return BADCTX; current = c; return OK; }
API cuCtxGetCurrent(Ctx **c) { *c = current; return OK; }
API cuCtxGetDevice(int *d) { NEED; *d = 0; return OK; }
API cuCtxSynchronize() { NEED; R r = drain_all(false); for (auto s : streams) if (s->vt > hv) hv = s->vt; if (null_stream.vt > hv) hv = null_stream.vt; return r; }

API cuMemGetInfo_v2(size_t *f, size_t *t) { NEED; *t = dev_cap; *f = dev_cap - dev_used; return OK; }
API cuMemAlloc_v2(Dptr *p, size_t n) {
	NEED;
	if (!n) return INVALID;
	if (dev_used + n > dev_cap) return OOM;
	char *m = (char *)aligned_alloc(256, (n + 255) / 256 * 256 + 256);
	memset(m, 0xff, (n + 255) / 256 * 256 + 256); // fresh memory reads as NaN / -1
	*p = (Dptr)m; dev_mem[*p] = n; dev_used += n;
	if ((long)dev_used > st.dev_peak) st.dev_peak = dev_used;
	return OK;
}
API cuMemFree_v2(Dptr p) { NEED; R r = drain_all(false); auto it = dev_mem.find(p); if (it == dev_mem.end()) return INVALID; dev_used -= it->second; dev_mem.erase(it); free((void *)p); return r; }
API cuMemHostAlloc(void **p, size_t n, unsigned) { NEED; *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096); memset(*p, 0xff, n); pinned[(Dptr)*p] = n; return OK; }
API cuMemAllocHost_v2(void **p, size_t n) { return cuMemHostAlloc(p, n, 0); }
API cuMemFreeHost(void *p) { NEED; drain_all(false); if (!pinned.erase((Dptr)p)) return INVALID; free(p); return OK; }
API cuMemHostRegister_v2(void *p, size_t n, unsigned) { NEED; pinned[(Dptr)p] = n; return OK; }
API cuMemHostUnregister(void *p) { NEED; drain_all(false); return pinned.erase((Dptr)p) ? OK : 713; }

static R copy_sync(void *d, const void *s, size_t n, Dptr dev, int e) {
	if (!inside(dev_mem, dev, n)) return INVALID;
	R r = drain_all(true);
	st.sync_copies++;
	hv = cost(e, n / 25e9 + 1e-6, &null_stream);
	memcpy(d, s, n);
	return r;
}
API cuMemcpyHtoD_v2(Dptr d, const void *s, size_t n) { NEED; return copy_sync((void *)d, s, n, d, 0); }
API cuMemcpyDtoH_v2(void *d, Dptr s, size_t n) { NEED; return copy_sync(d, (void *)s, n, s, 1); }
API cuMemcpyHtoDAsync_v2(Dptr d, const void *s, size_t n, void *h) {
	NEED;
	if (!inside(dev_mem, d, n)) return INVALID;
	cost(0, n / 25e9 + 1e-6, S(h));
	if (inside(pinned, (Dptr)s, n)) { // read when the copy runs
		st.async_pinned++;
		return enqueue(h, [=] { memcpy((void *)d, s, n); return OK; });
	}
	st.async_pageable++; // the real driver stages it before it returns
	hv = S(h)->vt;
	auto b = std::make_shared<std::vector<char>>((const char *)s, (const char *)s + n);
	return enqueue(h, [=] { memcpy((void *)d, b->data(), n); return OK; });
}
API cuMemcpyDtoHAsync_v2(void *d, Dptr s, size_t n, void *h) {
	NEED;
	if (!inside(dev_mem, s, n)) return INVALID;
	cost(1, n / 25e9 + 1e-6, S(h));
	(inside(pinned, (Dptr)d, n) ? st.async_pinned : st.async_pageable)++;
	R r = enqueue(h, [=] { memcpy(d, (void *)s, n); return OK; });
	return inside(pinned, (Dptr)d, n) ? r : drain(S(h));
}
API cuMemcpyDtoDAsync_v2(Dptr d, Dptr s, size_t n, void *h) { NEED; if (!inside(dev_mem, d, n) || !inside(dev_mem, s, n)) return INVALID; cost(2, n / 1e12 + 1e-6, S(h)); return enqueue(h, [=] { memmove((void *)d, (void *)s, n); return OK; }); }
API cuMemcpyDtoD_v2(Dptr d, Dptr s, size_t n) { return cuMemcpyDtoDAsync_v2(d, s, n, 0); }
API cuMemsetD8Async(Dptr d, unsigned char v, size_t n, void *h) { NEED; if (!inside(dev_mem, d, n)) return INVALID; cost(2, n / 1e12 + 1e-6, S(h)); return enqueue(h, [=] { memset((void *)d, v, n); return OK; }); }
API cuMemsetD32Async(Dptr d, unsigned v, size_t n, void *h) { NEED; if (!inside(dev_mem, d, n * 4)) return INVALID; cost(2, n / 1e12 + 1e-6, S(h)); return enqueue(h, [=] { for (size_t i = 0; i < n; i++) ((unsigned *)d)[i] = v; return OK; }); }
API cuMemsetD8_v2(Dptr d, unsigned char v, size_t n) { return cuMemsetD8Async(d, v, n, 0); }
API cuMemsetD32_v2(Dptr d, unsigned v, size_t n) { return cuMemsetD32Async(d, v, n, 0); }

API cuStreamCreate(Stream **s, unsigned f) { NEED; *s = new Stream; (*s)->nonblocking = f & 1; streams.insert(*s); return OK; }
API cuStreamCreateWithPriority(Stream **s, unsigned f, int) { return cuStreamCreate(s, f); }
API cuStreamDestroy_v2(Stream *s) { NEED; if (!streams.count(s)) return BADHANDLE; drain(s); streams.erase(s); return OK; }
API cuStreamSynchronize(void *h) { NEED; R r = h ? drain(S(h)) : drain_all(true); if (S(h)->vt > hv) hv = S(h)->vt; return r; }
API cuStreamQuery(void *h) { NEED; return S(h)->q.empty() ? OK : NOTREADY; }
API cuEventCreate(Event **e, unsigned) { NEED; *e = new Event; return OK; }
API cuEventDestroy_v2(Event *e) { NEED; if (e->s) run_to(e->s, e->at); delete e; return OK; }
API cuEventRecord(Event *e, void *h) { NEED; R r = enqueue(h, [] { return OK; }); e->s = S(h); e->at = e->s->enq; e->vt = e->s->vt > hv ? e->s->vt : hv; e->recorded = true; return r; }
API cuEventQuery(Event *e) { NEED; return !e->recorded || e->s->ran >= e->at ? OK : NOTREADY; }
API cuEventSynchronize(Event *e) { NEED; if (!e->recorded) return OK; R r = run_to(e->s, e->at); if (e->vt > hv) hv = e->vt; return r; }
API cuEventElapsedTime(float *ms, Event *a, Event *b) { NEED; if (!a->recorded || !b->recorded) return BADHANDLE; if (a->s->ran < a->at || b->s->ran < b->at) return NOTREADY; *ms = (b->vt - a->vt) * 1e3; return OK; }
API cuStreamWaitEvent(void *h, Event *e, unsigned) {
	NEED;
	if (!e->recorded) return OK;
	Stream *from = e->s; uint64_t at = e->at; // the record as it stands now
	if (e->vt > S(h)->vt) S(h)->vt = e->vt;
	return enqueue(h, [=] { return run_to(from, at); });
}

API cuModuleLoadDataEx(Module **m, const void *image, unsigned, void *, void *) {
	NEED;
	std::string s((const char *)image);
	if (s.find(".version") == std::string::npos || s.find(".entry") == std::string::npos) return BADIMAGE;
	*m = new Module;
	(*m)->ptx = s;
	std::string err;
	if (!ptxi::parse((*m)->ptx, (*m)->k, err)) { fprintf(stderr, "emulated CUDA: PTX: %s\n", err.c_str()); delete *m; return 218; }
	return OK;
}
API cuModuleLoadData(Module **m, const void *image) { return cuModuleLoadDataEx(m, image, 0, 0, 0); }
API cuModuleUnload(Module *m) { NEED; drain_all(false); return OK; }
API cuModuleGetFunction(Func **f, Module *m, const char *name) {
	NEED;
	auto it = m->k.find(name);
	if (it == m->k.end()) return NOTFOUND;
	const emu_kernel *k = emu_kernels;
	while (k && strcmp(k->name, name)) k = k->next;
	if (!k && !use_ptx()) { fprintf(stderr, "emulated CUDA: %s is in the PTX but has no CPU build\n", name); return NOTFOUND; }
	auto sizes = ptxi::param_sizes(it->second);
	if (k) { // the PTX and the source must agree
		bool same = (int)sizes.size() == k->nargs;
		for (int i = 0; same && i < k->nargs; i++) same = sizes[i] == k->size[i];
		if (!same) { fprintf(stderr, "emulated CUDA: %s: the PTX's parameters differ from the source's: stale PTX?\n", name); return NOTFOUND; }
	}
	*f = new Func{name, k, it->second, sizes};
	return OK;
}
API cuFuncSetAttribute(Func *, int, int) { return OK; }
API cuLaunchKernel(Func *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shm, void *h, void **params, void **extra) {
	NEED;
	if (!gx || !gy || !gz || !bx || !by || !bz || extra || (uint64_t)bx * by * bz > 1024 || gy > 65535 || gz > 65535 || bz > 64) return INVALID;
	if (shm > 49152) return INVALID;
	st.launches++;
	cost(2, 5e-6 + (double)gx * gy * gz * bx * by * bz * 1e-9, S(h));
	auto buf = std::make_shared<std::vector<std::vector<char>>>(); // arguments are copied at launch
	for (size_t i = 0; i < f->sizes.size(); i++) buf->push_back(std::vector<char>((char *)params[i], (char *)params[i] + f->sizes[i]));
	return enqueue(h, [=]() -> R {
		std::vector<void *> a;
		for (auto &b : *buf) a.push_back(b.data());
		if (use_ptx()) return ptxi::run(f->ptx, {gx, gy, gz}, {bx, by, bz}, shm, a.data());
		return emu_run(f->native, {gx, gy, gz}, {bx, by, bz}, shm, a.data());
	});
}

static const struct { int code; const char *name, *text; } results[] = {
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{600, "CUDA_ERROR_NOT_READY", "device not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
API cuGetErrorName(int r, const char **s) { for (auto &k : results) if (k.code == r) { *s = k.name; return OK; } *s = 0; return INVALID; }
API cuGetErrorString(int r, const char **s) { for (auto &k : results) if (k.code == r) { *s = k.text; return OK; } *s = 0; return INVALID; }
// statistics for tests
extern "C" __attribute__((visibility("default"))) void cuemu_stats(long *out) {
	LOCK;
	long v[] = {st.launches, st.async_pinned, st.async_pageable, st.sync_copies, (long)dev_used, st.dev_peak, (long)pinned.size(), st.errors, (long)(hv * 1e9)};
	memcpy(out, v, sizeof v);
}
