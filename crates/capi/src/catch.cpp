// Rust cannot catch a C++ exception, so this function does.
//
// The names of C++'s runtime that it needs are weak: a library that loads no runtime of its own
// suits programs in C, which have none. The names are null there, where nothing is thrown. In a
// program in C++ they lead to the runtime that throws, which is the only one that can catch.
__asm__(".weak __gxx_personality_v0\n"
        ".weak __cxa_begin_catch\n"
        ".weak __cxa_end_catch\n");

/// Calls `call` with `place`. Returns 1 if it throws, and 0 otherwise.
extern "C" __attribute__((visibility("hidden"))) int
punctual_catch(void (*call)(void *), void *place)
{
    try {
        call(place);
        return 0;
    } catch (...) {
        return 1;
    }
}
