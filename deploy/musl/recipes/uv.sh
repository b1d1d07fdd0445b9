# libuv: the files that its CMakeLists.txt lists for Linux.
apply path_max_zero_st_size fix-cve-2024-24806
unix=(async core dl fs getaddrinfo getnameinfo loop-watcher loop pipe poll process random-devurandom signal
    stream tcp thread tty udp proctitle linux-core linux-inotify linux-syscalls procfs-exepath
    random-getrandom random-sysctl-linux epoll)
compile -Iinclude -Isrc -D_GNU_SOURCE -D_POSIX_C_SOURCE=200112 -D_FILE_OFFSET_BITS=64 -D_LARGEFILE_SOURCE -- \
    src/*.c $(printf "src/unix/%s.c " "${unix[@]}")
install_headers . include/uv.h include/uv
