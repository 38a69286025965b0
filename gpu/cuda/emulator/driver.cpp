// An emulated CUDA driver for tests: the calls that pipectl makes, on the CPU. Its variables are
//
//	PIPECTL_EMULATOR_BACKEND=ptx      interprets the PTX that is loaded, with its checks; else the kernels' sources run,
//	                                  compiled for the CPU
//	PIPECTL_EMULATOR_STREAMS=eager    does all work at once; else as late as may be, and where a call waits for all streams,
//	                                  the oldest's first; with newest the newest's first
//	PIPECTL_EMULATOR_DEVICES=0        finds no GPU
//	PIPECTL_EMULATOR_MEMORY=n         has n bytes of device memory; else 1 GiB
//	PIPECTL_EMULATOR_CAPABILITY=n     has the compute capability n, as in 75 for 7.5; else 8.0
//	PIPECTL_EMULATOR_VERSION=n        serves the CUDA version n, as in 11040 for 11.4; else 12.4
//	PIPECTL_EMULATOR_FAIL=n           lets the n-th call fail,
//	PIPECTL_EMULATOR_FAIL_WITH=n      with the CUresult n; else CUDA_ERROR_INVALID_VALUE. One that loses the context, such as
//	                                  719, is what all later calls return too
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <string>
#include <vector>

#include "emulator.h"
#include "machine.h"
#include "ptx.h"

struct CUctx_st {};
struct CUfunc_st {
	const ptx::Kernel *ptx;
	const NativeKernel *native;
};
struct CUmod_st {
	std::map<std::string, ptx::Kernel> kernels;
	std::map<std::string, CUfunc_st> functions;
};

static CUctx_st primary;
static thread_local CUcontext current;

#define API extern "C" __attribute__((visibility("default")))
#define CALL(needsDevice)                                                                                                        \
	std::lock_guard<std::recursive_mutex> lock(machine.mutex);                                                                   \
	if (!machine.initialized) return CUDA_ERROR_NOT_INITIALIZED;                                                                 \
	if (CUresult fault = machine.fails(needsDevice)) return fault
// A call that needs no context, and one that does.
#define CALL_DRIVER CALL(false)
#define CALL_CONTEXT                                                                                                             \
	CALL(true);                                                                                                                  \
	if (!current || !machine.retained) return CUDA_ERROR_INVALID_CONTEXT

static bool onPTX() { return isSet("BACKEND", "ptx"); }
static uint64_t capacity() { return setting("MEMORY", 1 << 30); }

static const struct {
	int result;
	const char *name, *text;
} results[] = {
#define RESULT(name, text) {name, #name, text}
	RESULT(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	RESULT(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	RESULT(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
	RESULT(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
	RESULT(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	RESULT(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
	RESULT(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	RESULT(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
	RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
	RESULT(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
	RESULT(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
	RESULT(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain."),
	RESULT(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
	RESULT(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
	RESULT(CUDA_ERROR_NOT_READY, "device not ready"),
	RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	RESULT(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
	RESULT(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
	RESULT(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
	RESULT(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	RESULT(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
	RESULT(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef RESULT
};

API CUresult cuGetErrorName(CUresult result, const char **name) {
	*name = nullptr;
	for (auto &r : results)
		if (r.result == result) *name = r.name;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGetErrorString(CUresult result, const char **text) {
	*text = nullptr;
	for (auto &r : results)
		if (r.result == result) *text = r.text;
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The driver and the device.

API CUresult cuInit(unsigned int flags) {
	std::lock_guard<std::recursive_mutex> lock(machine.mutex);
	if (flags) return CUDA_ERROR_INVALID_VALUE;
	if (CUresult fault = machine.fails(false)) return fault;
	if (setting("DEVICES", 1) == 0) return CUDA_ERROR_NO_DEVICE;
	machine.initialized = true;
	return CUDA_SUCCESS;
}

API CUresult cuDriverGetVersion(int *version) {
	*version = setting("VERSION", 12040);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count) {
	CALL_DRIVER;
	*count = 1;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
	CALL_DRIVER;
	if (ordinal) return CUDA_ERROR_INVALID_DEVICE;
	*device = 0;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int length, CUdevice) {
	CALL_DRIVER;
	snprintf(name, length, "emulated GPU");
	return CUDA_SUCCESS;
}

API CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
	CALL_DRIVER;
	*bytes = capacity();
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
	CALL_DRIVER;
	const int capability = setting("CAPABILITY", 80);
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 << 10; break;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 1; break;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 2; break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = 0x65; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability / 10; break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability % 10; break;
	default: *value = 0;
	}
	return CUDA_SUCCESS;
}

// The primary context, the only one.

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
	CALL_DRIVER;
	machine.retained++;
	*context = &primary;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice) {
	CALL_DRIVER;
	if (!machine.retained) return CUDA_ERROR_INVALID_CONTEXT;
	if (--machine.retained == 0) machine.destroyContext();
	return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context) {
	CALL(true);
	if (context && !machine.retained) return CUDA_ERROR_INVALID_CONTEXT;
	current = context;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *context) {
	CALL_DRIVER;
	*context = current;
	return CUDA_SUCCESS;
}

static void waitFor(CUstream s) { machine.host = std::max(machine.host, s->time); }

API CUresult cuCtxSynchronize(void) {
	CALL_CONTEXT;
	CUresult result = machine.drainAll();
	for (CUstream s : machine.streams) waitFor(s);
	waitFor(&machine.nullStream);
	return result;
}

// Memory.

API CUresult cuMemGetInfo(size_t *unused, size_t *total) {
	CALL_CONTEXT;
	*total = capacity();
	*unused = *total - machine.used;
	return CUDA_SUCCESS;
}

static void *allocate(size_t alignment, size_t n) {
	n = (n + alignment - 1) / alignment * alignment;
	void *p = aligned_alloc(alignment, n);
	if (p) memset(p, 0xff, n); // reads as NaN and -1
	return p;
}

API CUresult cuMemAlloc(CUdeviceptr *address, size_t n) {
	CALL_CONTEXT;
	if (!n) return CUDA_ERROR_INVALID_VALUE;
	void *p = n <= capacity() - machine.used ? allocate(256, n) : nullptr;
	if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
	*address = reinterpret_cast<CUdeviceptr>(p);
	machine.device[*address] = n;
	machine.used += n;
	return CUDA_SUCCESS;
}

API CUresult cuMemFree(CUdeviceptr address) {
	CALL_CONTEXT;
	CUresult result = machine.drainAll();
	auto a = machine.device.find(address);
	if (a == machine.device.end()) return CUDA_ERROR_INVALID_VALUE;
	machine.used -= a->second;
	machine.device.erase(a);
	free(reinterpret_cast<void *>(address));
	return result;
}

API CUresult cuMemHostAlloc(void **p, size_t n, unsigned int) {
	CALL_CONTEXT;
	if (!n) return CUDA_ERROR_INVALID_VALUE;
	*p = allocate(4096, n);
	if (!*p) return CUDA_ERROR_OUT_OF_MEMORY;
	machine.pinned[reinterpret_cast<uint64_t>(*p)] = n;
	return CUDA_SUCCESS;
}

API CUresult cuMemFreeHost(void *p) {
	CALL_CONTEXT;
	CUresult result = machine.drainAll();
	if (!machine.pinned.erase(reinterpret_cast<uint64_t>(p))) return CUDA_ERROR_INVALID_VALUE;
	free(p);
	return result;
}

// Copies. The link carries 25 GB/s each way, and device memory 1 TB/s.

static double linkTime(size_t n) { return 1e-6 + n / 25e9; }
static double memoryTime(size_t n) { return 1e-6 + n / 1e12; }
static bool onDevice(CUdeviceptr p, size_t n) { return isIn(machine.device, p, n); }
static bool isPinned(const void *p, size_t n) { return isIn(machine.pinned, reinterpret_cast<uint64_t>(p), n); }
static void *pointer(CUdeviceptr p) { return reinterpret_cast<void *>(p); }

#define CHECK_STREAM                                                                                                             \
	if (!s) s = &machine.nullStream;                                                                                             \
	if (!machine.has(s)) return CUDA_ERROR_INVALID_HANDLE

static CUresult copyNow(void *to, const void *from, size_t n, Engine engine) {
	CUresult result = machine.drainAll(true);
	machine.book(&machine.nullStream, engine, linkTime(n));
	waitFor(&machine.nullStream);
	memcpy(to, from, n);
	return result;
}

API CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t n) {
	CALL_CONTEXT;
	return onDevice(to, n) ? copyNow(pointer(to), from, n, ToDevice) : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t n) {
	CALL_CONTEXT;
	return onDevice(from, n) ? copyNow(to, pointer(from), n, ToHost) : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t n, CUstream s) {
	CALL_CONTEXT;
	CHECK_STREAM;
	if (!onDevice(to, n)) return CUDA_ERROR_INVALID_VALUE;
	machine.book(s, ToDevice, linkTime(n));
	if (isPinned(from, n)) {
		return machine.enqueue(s, [=] {
			memcpy(pointer(to), from, n);
			return 0;
		});
	}
	// The driver takes it to memory of its own before it returns, at the pace of the link.
	waitFor(s);
	auto staged = std::make_shared<std::string>(static_cast<const char *>(from), n);
	return machine.enqueue(s, [=] {
		memcpy(pointer(to), staged->data(), n);
		return 0;
	});
}

API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t n, CUstream s) {
	CALL_CONTEXT;
	CHECK_STREAM;
	if (!onDevice(from, n)) return CUDA_ERROR_INVALID_VALUE;
	machine.book(s, ToHost, linkTime(n));
	CUresult result = machine.enqueue(s, [=] {
		memcpy(to, pointer(from), n);
		return 0;
	});
	if (isPinned(to, n)) return result;
	waitFor(s);
	return machine.drain(s);
}

API CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
	CALL_CONTEXT;
	CHECK_STREAM;
	if (!onDevice(to, n) || !onDevice(from, n)) return CUDA_ERROR_INVALID_VALUE;
	machine.book(s, Compute, memoryTime(n));
	return machine.enqueue(s, [=] {
		memmove(pointer(to), pointer(from), n);
		return 0;
	});
}

API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) {
	CALL_CONTEXT;
	CHECK_STREAM;
	if (!onDevice(to, n)) return CUDA_ERROR_INVALID_VALUE;
	machine.book(s, Compute, memoryTime(n));
	return machine.enqueue(s, [=] {
		memset(pointer(to), value, n);
		return 0;
	});
}

API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream s) {
	CALL_CONTEXT;
	CHECK_STREAM;
	if (!onDevice(to, 4 * n)) return CUDA_ERROR_INVALID_VALUE;
	machine.book(s, Compute, memoryTime(4 * n));
	return machine.enqueue(s, [=] {
		for (size_t i = 0; i < n; i++) static_cast<unsigned int *>(pointer(to))[i] = value;
		return 0;
	});
}

API CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t n) { return cuMemsetD8Async(to, value, n, nullptr); }
API CUresult cuMemsetD32(CUdeviceptr to, unsigned int value, size_t n) { return cuMemsetD32Async(to, value, n, nullptr); }

// Streams and events.

API CUresult cuStreamCreate(CUstream *s, unsigned int flags) {
	CALL_CONTEXT;
	*s = new CUstream_st;
	(*s)->nonBlocking = flags & CU_STREAM_NON_BLOCKING;
	machine.streams.push_back(*s);
	return CUDA_SUCCESS;
}

API CUresult cuStreamDestroy(CUstream s) {
	CALL_CONTEXT;
	auto at = std::find(machine.streams.begin(), machine.streams.end(), s);
	if (at == machine.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = machine.drain(s);
	for (CUevent e : machine.events)
		if (e->stream == s) e->stream = &machine.nullStream, e->after = 0; // what it marks is done
	machine.streams.erase(at);
	delete s;
	return result;
}

API CUresult cuStreamSynchronize(CUstream s) {
	CALL_CONTEXT;
	CHECK_STREAM;
	CUresult result = s == &machine.nullStream ? machine.drainAll(true) : machine.drain(s);
	waitFor(s);
	return result;
}

API CUresult cuStreamQuery(CUstream s) {
	CALL_CONTEXT;
	CHECK_STREAM;
	return s->queue.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

API CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int) {
	CALL_CONTEXT;
	CHECK_STREAM;
	if (!machine.events.count(e)) return CUDA_ERROR_INVALID_HANDLE;
	if (!e->stream) return CUDA_SUCCESS;
	s->time = std::max(s->time, e->time);
	// It waits for the event as it stands now, whatever becomes of it.
	return machine.enqueue(s, [from = e->stream, after = e->after]() -> int {
		return machine.has(from) ? machine.drain(from, after) : CUDA_SUCCESS;
	});
}

API CUresult cuEventCreate(CUevent *e, unsigned int flags) {
	CALL_CONTEXT;
	*e = new CUevent_st;
	(*e)->timed = !(flags & CU_EVENT_DISABLE_TIMING);
	machine.events.insert(*e);
	return CUDA_SUCCESS;
}

#define CHECK_EVENT(e)                                                                                                           \
	if (!machine.events.count(e)) return CUDA_ERROR_INVALID_HANDLE

API CUresult cuEventDestroy(CUevent e) {
	CALL_CONTEXT;
	CHECK_EVENT(e);
	machine.events.erase(e);
	delete e;
	return CUDA_SUCCESS;
}

API CUresult cuEventRecord(CUevent e, CUstream s) {
	CALL_CONTEXT;
	CHECK_STREAM;
	CHECK_EVENT(e);
	CUresult result = machine.enqueue(s, [] { return 0; });
	e->stream = s;
	e->after = s->queued;
	e->time = std::max(s->time, machine.host);
	return result;
}

API CUresult cuEventQuery(CUevent e) {
	CALL_CONTEXT;
	CHECK_EVENT(e);
	return !e->stream || e->stream->done >= e->after ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

API CUresult cuEventSynchronize(CUevent e) {
	CALL_CONTEXT;
	CHECK_EVENT(e);
	if (!e->stream) return CUDA_SUCCESS;
	CUresult result = machine.drain(e->stream, e->after);
	machine.host = std::max(machine.host, e->time);
	return result;
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
	CALL_CONTEXT;
	CHECK_EVENT(start);
	CHECK_EVENT(end);
	if (!start->stream || !end->stream || !start->timed || !end->timed) return CUDA_ERROR_INVALID_HANDLE;
	if (start->stream->done < start->after || end->stream->done < end->after) return CUDA_ERROR_NOT_READY;
	*milliseconds = (end->time - start->time) * 1e3;
	return CUDA_SUCCESS;
}

// Modules and kernels.

// versionOf returns the number behind a word of the PTX's head: 78 for ".version 7.8", 70 for ".target sm_70".
static int versionOf(const std::string &ptx, const char *word) {
	size_t at = ptx.find(word);
	int version = 0;
	while (at != std::string::npos && at < ptx.size() && !isdigit(ptx[at])) at++;
	for (; at < ptx.size() && (isdigit(ptx[at]) || ptx[at] == '.'); at++)
		if (ptx[at] != '.') version = version * 10 + ptx[at] - '0';
	return version;
}

API CUresult cuModuleLoadData(CUmodule *m, const void *image) {
	CALL_CONTEXT;
	const std::string source(static_cast<const char *>(image));
	if (source.find(".version") == std::string::npos) return CUDA_ERROR_INVALID_IMAGE;
	// CUDA 11.4 came with PTX 7.4, 12.0 with 8.0, and the others of these lines likewise.
	const int version = setting("VERSION", 12040);
	if (versionOf(source, ".version") > (version / 1000 - 4) * 10 + version % 1000 / 10) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	if (versionOf(source, ".target") > setting("CAPABILITY", 80)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
	// Tests load the same kernels again and again.
	static std::map<std::string, std::map<std::string, ptx::Kernel>> parsed;
	auto known = parsed.find(source);
	if (known == parsed.end()) {
		std::string error;
		auto kernels = ptx::parse(source, error);
		if (!error.empty()) {
			fprintf(stderr, "emulated CUDA: PTX: %s\n", error.c_str());
			return CUDA_ERROR_INVALID_PTX;
		}
		known = parsed.emplace(source, std::move(kernels)).first;
	}
	auto module = std::make_unique<CUmod_st>();
	module->kernels = known->second;
	*m = module.release();
	machine.modules.insert(*m);
	return CUDA_SUCCESS;
}

API CUresult cuModuleUnload(CUmodule m) {
	CALL_CONTEXT;
	CUresult result = machine.drainAll();
	if (!machine.modules.erase(m)) return CUDA_ERROR_INVALID_HANDLE;
	delete m;
	return result;
}

API CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	CALL_CONTEXT;
	if (!machine.modules.count(m)) return CUDA_ERROR_INVALID_HANDLE;
	auto kernel = m->kernels.find(name);
	if (kernel == m->kernels.end()) return CUDA_ERROR_NOT_FOUND;
	const ptx::Kernel &k = kernel->second;
	const NativeKernel *native = nativeKernels;
	while (native && strcmp(native->name, name)) native = native->next;
	if (!native && !onPTX()) {
		fprintf(stderr, "emulated CUDA: %s is in the PTX and not in the emulator: build the emulator anew\n", name);
		return CUDA_ERROR_NOT_FOUND;
	}
	if (native && (k.parameterSizes.size() != size_t(native->parameters) || !std::equal(k.parameterSizes.begin(), k.parameterSizes.end(), native->sizes))) {
		fprintf(stderr, "emulated CUDA: %s: the parameters in the PTX aren't those in the source: compile the PTX anew\n", name);
		return CUDA_ERROR_NOT_FOUND;
	}
	*f = &m->functions.emplace(name, CUfunc_st{&k, native}).first->second;
	return CUDA_SUCCESS;
}

API CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
		unsigned int shared, CUstream s, void **parameters, void **extra) {
	CALL_CONTEXT;
	CHECK_STREAM;
	const uint64_t threads = uint64_t(bx) * by * bz;
	if (!gx || !gy || !gz || !threads || threads > 1024 || bz > 64 || gx > 0x7fffffff || gy > 65535 || gz > 65535 || extra) return CUDA_ERROR_INVALID_VALUE;
	if (shared + f->ptx->shared > 48 << 10) return CUDA_ERROR_INVALID_VALUE;
	machine.book(s, Compute, 5e-6 + 1e-9 * threads * gx * gy * gz);
	auto arguments = std::make_shared<std::vector<std::string>>(); // as they are now
	for (size_t i = 0; i < f->ptx->parameterSizes.size(); i++)
		arguments->emplace_back(static_cast<const char *>(parameters[i]), f->ptx->parameterSizes[i]);
	return machine.enqueue(s, [=]() -> int {
		std::vector<void *> pointers;
		for (std::string &a : *arguments) pointers.push_back(a.data());
		const Dim3 grid = {gx, gy, gz}, block = {bx, by, bz};
		return onPTX() ? ptx::run(*f->ptx, grid, block, shared, pointers.data()) : runNative(*f->native, grid, block, pointers.data());
	});
}

// For tests.

// emulator_state writes the numbers of allocations on the device, pinned ones, streams, events and modules, then the same
// as they were when the context went last, then the number of calls so far.
API void emulator_state(int64_t state[11]) {
	std::lock_guard<std::recursive_mutex> lock(machine.mutex);
	const int64_t now[] = {int64_t(machine.device.size()), int64_t(machine.pinned.size()), int64_t(machine.streams.size()), int64_t(machine.events.size()), int64_t(machine.modules.size())};
	memcpy(state, now, sizeof now);
	memcpy(state + 5, machine.left, sizeof machine.left);
	state[10] = machine.calls;
}

// emulator_fail starts the counting of calls anew and lets the n-th fail with a CUresult; none where n is 0.
API void emulator_fail(int64_t n, int result) {
	std::lock_guard<std::recursive_mutex> lock(machine.mutex);
	machine.calls = 0;
	machine.failAt = n;
	machine.failWith = CUresult(result);
}

// emulator_reset forgets everything: what programs hold, a lost device and what fails.
API void emulator_reset() {
	std::lock_guard<std::recursive_mutex> lock(machine.mutex);
	machine.destroyContext();
	machine.retained = 0;
	machine.failAt = 0;
	memset(machine.left, 0, sizeof machine.left);
}
