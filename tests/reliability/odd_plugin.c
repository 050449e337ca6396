/* A plugin that breaks the contract in the way that the environment variable GESTALT_ODD names, for bad_plugins.cpp.
 * Its constructor leaves a file behind, so that a test can tell whether any of its code ran. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gestalt/abi/tracker.h"

#ifndef ODD_MAIN
#define ODD_MAIN gestalt_plugin_main_v1
#endif
#ifndef ODD_ID
#define ODD_ID "acme.odd"
#endif
#ifndef ODD_KERNEL_OP
#define ODD_KERNEL_OP "acme.twice"
#endif
#ifndef ODD_BACKEND
#define ODD_BACKEND "acme.cpu"
#endif

#define STR(text) \
  { text, sizeof(text) - 1 }

#ifdef ODD_DEPENDENCY
int odd_dependency(void);
#endif

__attribute__((constructor)) static void leave_mark(void) {
  const char* path = getenv("GESTALT_ODD_MARK");
  FILE* file = path ? fopen(path, "w") : NULL;
  if (file) fclose(file);
}

static gestalt_status* kernel_prepare(const gestalt_host* host, gestalt_plan* plan) {
  (void)host, (void)plan;
  return NULL;
}
static gestalt_status* kernel_run(void* state, const gestalt_call* call) {
  (void)state, (void)call;
  return NULL;
}
static void kernel_destroy(void* state) { (void)state; }

static gestalt_status* tracker_open(void* self, gestalt_str folder, gestalt_str run_name, int64_t step) {
  (void)self, (void)folder, (void)run_name, (void)step;
  return NULL;
}
static gestalt_status* tracker_write(void* self, int64_t step, const gestalt_metric* metrics, uint64_t num) {
  (void)self, (void)step, (void)metrics, (void)num;
  return NULL;
}
static gestalt_status* tracker_flush(void* self) {
  (void)self;
  return NULL;
}
static gestalt_status* tracker_create(const gestalt_host* host, const gestalt_attr* config, uint64_t num, void** self) {
  (void)host, (void)config, (void)num;
  *self = NULL;
  return NULL;
}
static void tracker_destroy(void* self) { (void)self; }

static gestalt_op op = {
    sizeof(gestalt_op), STR("acme.twice(x) -> (y)"), GESTALT_OP_PURE, kernel_prepare, NULL, NULL, NULL};
static gestalt_kernel kernel = {sizeof(gestalt_kernel),       STR(ODD_KERNEL_OP), STR("cpu"), STR(ODD_BACKEND),
                                GESTALT_KERNEL_DETERMINISTIC, kernel_prepare,    kernel_run, kernel_destroy};
static gestalt_tracker_1 table = {sizeof(gestalt_tracker_1), tracker_open, tracker_write, tracker_flush};
static gestalt_config_key keys[] = {
    {STR("every"), STR("i64"), STR("10"), STR("1"), STR(""), STR(""), STR(""), STR("steps between lines"), 0},
    {STR("every"), STR("i64"), STR("10"), STR("1"), STR(""), STR(""), STR(""), STR("steps between lines"), 0}};
static gestalt_component component = {
    sizeof(gestalt_component), STR("tracker/1"), STR("acme.tracker"), keys, 1, tracker_create, tracker_destroy, &table};
static const gestalt_op* ops[] = {&op, &op};
static const gestalt_kernel* kernels[] = {&kernel, &kernel};
static const gestalt_component* components[] = {&component, &component};
static gestalt_plugin plugin = {sizeof(gestalt_plugin),
                                GESTALT_ABI_MAJOR,
                                0,
                                0,
                                0,
                                STR(ODD_ID),
                                STR("1.0.0"),
                                STR("test"),
                                ops,
                                1,
                                kernels,
                                1,
                                components,
                                1,
                                NULL};

static const char* mode;
static int is(const char* name) { return strcmp(mode, name) == 0; }

__attribute__((visibility("default"))) gestalt_status* ODD_MAIN(const gestalt_host* host, const gestalt_plugin** out) {
  const uint64_t high_bit = (uint64_t)1 << 40;
  const gestalt_str nothing = {NULL, 4}, empty = {NULL, 0}, control = STR("a\tb"), capital = STR("Acme.odd"),
                    lone = STR("acme"), other_id = STR("acme.other"), other_version = STR("1.0.1"),
                    foreign = STR("rival.twice(x) -> (y)"), core_op = STR("core.twice(x) -> (y)"),
                    no_namespace = STR("twice(x) -> (y)"), other_schema = STR("acme.twice(x, z) -> (y)"),
                    other_device = STR("cuda"), no_type = STR("i65"), below = STR("0"), no_toml = STR("= ="),
                    no_revision = STR("tracker");
  mode = getenv("GESTALT_ODD");
  if (!mode) mode = "";
#ifdef ODD_DEPENDENCY
  if (odd_dependency() != 7) return NULL;
#endif
  *out = &plugin;
  if (is("status")) {
    const gestalt_str message = STR("no luck today");
    return host->status_new(host->self, GESTALT_UNAVAILABLE, message);
  }
  if (is("no descriptor")) *out = NULL;
  if (is("small descriptor")) plugin.struct_size = 16;
  if (is("huge descriptor")) plugin.struct_size = ~(uint64_t)7;
  if (is("uneven descriptor")) plugin.struct_size += 3;
  if (is("abi major")) plugin.abi_major = 2;
  if (is("host minor")) plugin.min_host_minor = 7;
  if (is("null id")) plugin.id = nothing;
  if (is("capital id")) plugin.id = capital;
  if (is("lone id")) plugin.id = lone;
  if (is("other id")) plugin.id = other_id;
  if (is("no version")) plugin.version = empty;
  if (is("other version")) plugin.version = other_version;
  if (is("control in version")) plugin.version = control;
  if (is("null ops")) plugin.ops = NULL;
  if (is("null op")) ops[0] = NULL;
  if (is("huge count")) plugin.num_kernels = ~(uint64_t)0;
  if (is("op size")) op.struct_size = 8;
  if (is("op without infer")) op.infer = NULL;
  if (is("op flag")) op.flags |= high_bit;
  if (is("op without namespace")) op.schema = no_namespace;
  if (is("foreign op")) op.schema = foreign;
  if (is("core op")) op.schema = core_op;
  if (is("other schema")) op.schema = other_schema;
  if (is("op twice")) plugin.num_ops = 2;
  if (is("null kernels")) plugin.kernels = NULL;
  if (is("null kernel")) kernels[0] = NULL;
  if (is("kernel size")) kernel.struct_size = 8;
  if (is("kernel flag")) kernel.flags |= high_bit;
  if (is("unknown low flag")) kernel.flags |= 1u << 20;
  if (is("kernel without run")) kernel.run = NULL;
  if (is("kernel without prepare")) kernel.prepare = NULL;
  if (is("kernel without destroy")) kernel.destroy = NULL;
  if (is("kernel without op")) kernel.op = empty;
  if (is("kernel device")) kernel.device = other_device;
  if (is("kernel twice")) plugin.num_kernels = 2;
  if (is("fewer kernels")) plugin.num_kernels = 0;
  if (is("null component")) components[0] = NULL;
  if (is("component kind")) component.kind = no_revision;
  if (is("component without create")) component.create = NULL;
  if (is("component without table")) component.table = NULL;
  if (is("small table")) table.struct_size = 8;
  if (is("component twice")) plugin.num_components = 2;
  if (is("null keys")) component.keys = NULL;
  if (is("key twice")) component.num_keys = 2;
  if (is("key type")) keys[0].type = no_type;
  if (is("key default")) keys[0].default_value = below;
  if (is("key literal")) keys[0].default_value = no_toml;
  if (is("key null")) keys[0].name = nothing;
  return NULL;
}
