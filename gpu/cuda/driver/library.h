#include <stddef.h>

/* library_load loads the driver library of that file or soname and fills the slots of the trampolines with its
 * functions. It stores its cuInit, or null where the library isn't complete. It returns 0, or 1 where the library can't
 * be loaded, with the dynamic linker's reason in why, or 2 where it lacks the function that why names. why has n bytes. */
int library_load(const char *file, void **init, char *why, size_t n);

/* library_init calls the driver's cuInit. It returns a CUresult. */
int library_init(void *init);
