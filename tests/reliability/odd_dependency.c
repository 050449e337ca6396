int odd_dependency(void);
__attribute__((visibility("default"))) int odd_dependency(void) { return 7; }
