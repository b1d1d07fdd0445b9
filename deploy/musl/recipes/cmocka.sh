# cmocka: for the unit tests on the other architecture.
cat >config.h <<EOF
#define HAVE_CLOCK_GETTIME 1
#define HAVE_CLOCK_REALTIME 1
#define HAVE_GCC_THREAD_LOCAL_STORAGE 1
#define HAVE_INTTYPES_H 1
#define HAVE_MALLOC_H 1
#define HAVE_MEMORY_H 1
#define HAVE_SETJMP_H 1
#define HAVE_SIGNAL_H 1
#define HAVE_SNPRINTF 1
#define HAVE_STDINT_H 1
#define HAVE_STDIO_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRINGS_H 1
#define HAVE_STRING_H 1
#define HAVE_STRSIGNAL 1
#define HAVE_STRUCT_TIMESPEC 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_TIME_H 1
#define HAVE_UNISTD_H 1
#define HAVE_VSNPRINTF 1
EOF
# It would define uintptr_t itself where it finds no macro of another libc's.
sed -i '1i #include <stdint.h>\n#define _UINTPTR_T' include/cmocka.h
compile -I. -Iinclude -DHAVE_CONFIG_H -w -- src/cmocka.c
install_headers . include/cmocka.h
