/* A SPANK plugin that gives srun the options of pyxis, so that tests can show that they arrive. It
 * enters no container: it leaves what each task was given in QUALIFY_TEST_CONTAINER_*, and applies
 * --container-workdir and --container-env, whose effect the tasks see.
 * Source of the options: pyxis README. */
#define _GNU_SOURCE
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(qualify_container, 1)

enum { kImage, kMounts, kWorkdir, kEnv, kMountHome, kOptions };

static char* given[kOptions];

static const char* const kNames[kOptions] = {"IMAGE", "MOUNTS", "WORKDIR", "ENV", "NO_HOME"};

static int keep(int option, const char* argument, int remote) {
  (void)remote;
  free(given[option]);
  given[option] = strdup(argument == NULL || *argument == '\0' ? "yes" : argument);
  return given[option] == NULL ? -1 : 0;
}

static struct spank_option options[] = {
    {"container-image", "IMAGE", "image to run in", 1, kImage, keep},
    {"container-mounts", "SRC:DST[:FLAGS][,...]", "what to mount", 1, kMounts, keep},
    {"container-workdir", "PATH", "working folder within", 1, kWorkdir, keep},
    {"container-env", "NAME[,...]", "variables that win over the image's", 1, kEnv, keep},
    {"no-container-mount-home", NULL, "do not mount the home folder", 0, kMountHome, keep},
    SPANK_OPTIONS_TABLE_END};

int slurm_spank_init(spank_t spank, int count, char** arguments) {
  (void)count;
  (void)arguments;
  for (int i = 0; options[i].name != NULL; ++i) {
    if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS) return -1;
  }
  return 0;
}

int slurm_spank_task_init(spank_t spank, int count, char** arguments) {
  (void)count;
  (void)arguments;
  char name[64];
  for (int i = 0; i < kOptions; ++i) {
    if (given[i] == NULL) continue;
    snprintf(name, sizeof name, "QUALIFY_TEST_CONTAINER_%s", kNames[i]);
    spank_setenv(spank, name, given[i], 1);
  }
  /* An image that brings a variable of its own, as many do. */
  if (given[kImage] != NULL) {
    char listed[1024];
    snprintf(listed, sizeof listed, ",%s,", given[kEnv] == NULL ? "" : given[kEnv]);
    if (strstr(listed, ",NCCL_ALGO,") == NULL) spank_setenv(spank, "NCCL_ALGO", "of-the-image", 1);
  }
  if (given[kWorkdir] != NULL && chdir(given[kWorkdir]) != 0) return -1;
  return 0;
}
