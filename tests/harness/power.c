/* The power of a disk fails: what the file system at each of these paths has not handed to its disk is lost, and nothing more is.

   EXT4_IOC_SHUTDOWN of Linux, without a flush of its log; the file system is then good for nothing until it is mounted again. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define SHUTDOWN _IOR('X', 125, uint32_t)
enum { WITHOUT_LOG = 2 };

int main(int count, char **paths) {
    for (int i = 1; i < count; i++) {
        uint32_t how = WITHOUT_LOG;
        int folder = open(paths[i], O_RDONLY | O_DIRECTORY);
        if (folder < 0 || ioctl(folder, SHUTDOWN, &how)) {
            perror(paths[i]);
            return 1;
        }
    }
    return 0;
}
