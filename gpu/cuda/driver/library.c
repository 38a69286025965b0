/* The functions of the driver library. None is called before library_load has found the driver: until then each returns
 * CUDA_ERROR_NOT_INITIALIZED. */
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>

#include "cuda.h"

static CUresult not_initialized(void) { return CUDA_ERROR_NOT_INITIALIZED; }

static CUresult not_found(void) { return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND; }

/* The slots. They are read by trampolines.S alone, so nothing may inline or drop them. */
#define NEEDED(f) __attribute__((visibility("hidden"), used)) void *slot_##f = (void *)not_initialized;
#define OTHER(f) NEEDED(f)
#include "symbols.h"
#undef NEEDED
#undef OTHER

/* gorgonia.org/cu calls cuInit before main starts and ends the process where it fails. So this one always succeeds and
 * touches nothing. The driver's own is called by library_init. */
__attribute__((visibility("hidden"))) CUresult cuInit(unsigned int flags)
{
	(void)flags;
	return CUDA_SUCCESS;
}

int library_load(const char *file, void **init, char *why, size_t n)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL), *f;
	if (!library) {
		snprintf(why, n, "%s", dlerror());
		return 1;
	}
	const char *missing = NULL;
	*init = dlsym(library, "cuInit");
	if (!*init)
		missing = "cuInit";
#define NEEDED(f) if (!missing && !dlsym(library, #f)) missing = #f;
#define OTHER(f)
#include "symbols.h"
#undef NEEDED
#undef OTHER
	if (missing) {
		snprintf(why, n, "%s", missing);
		dlclose(library);
		return 2;
	}
#define NEEDED(s) slot_##s = dlsym(library, #s);
#define OTHER(s) f = dlsym(library, #s); slot_##s = f ? f : (void *)not_found;
#include "symbols.h"
	return 0;
}

int library_init(void *init) { return ((CUresult(*)(unsigned int))init)(0); }
