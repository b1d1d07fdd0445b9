/*
 * main.c: the program's entry; everything it can do is in cli.c.
 */
#include "server/cli.h"

int main(int argc, char **argv)
{
    extern char **environ;
    return cli_run(argc, argv, environ);
}
